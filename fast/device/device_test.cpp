#include "fast/device/device.hpp"

#include <gtest/gtest.h>

#include <cstring>

namespace assay::fast {
namespace {

StartedCuda answered(cudaError_t status, int driver = CUDART_VERSION) {
  StartedCuda started;
  started.status = status;
  started.driver = driver;
  return started;
}

StartedCuda on_device(cudaError_t status, const char* name, int major, int minor) {
  StartedCuda started = answered(status);
  started.devices = 1;
  std::strncpy(started.properties.name, name, sizeof(started.properties.name) - 1);
  started.properties.major = major;
  started.properties.minor = minor;
  return started;
}

bool mentions(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(Device, AUsableOneIsNamedWithItsArchitecture) {
  const DeviceFacts facts = facts_of(on_device(cudaSuccess, "NVIDIA H200", 9, 0));
  EXPECT_TRUE(facts.is_usable);
  EXPECT_EQ(facts.name, "NVIDIA H200 sm_90");
  EXPECT_EQ(facts.architecture, "sm_90");
  EXPECT_EQ(facts.reason, "");
}

TEST(Device, ADriverOlderThanTheBuildIsNamedWithBothVersions) {
  const DeviceFacts facts = facts_of(answered(cudaErrorInsufficientDriver, 12040));
  EXPECT_FALSE(facts.is_usable);
  EXPECT_TRUE(facts.name.starts_with("none: the driver supports CUDA 12.4, this build needs 1")) << facts.name;
  EXPECT_EQ(facts.versions[1], "driver 12.4");
}

TEST(Device, NoDriverIsNotAnOldDriver) {
  const DeviceFacts facts = facts_of(answered(cudaErrorInsufficientDriver, 0));
  EXPECT_EQ(facts.name, "none: no NVIDIA driver is installed");
  EXPECT_EQ(facts.versions[1], "driver none");
}

TEST(Device, OneThatIsHiddenIsMissing) {
  const DeviceFacts facts = facts_of(answered(cudaErrorNoDevice));
  EXPECT_TRUE(facts.name.starts_with("none: no CUDA device is visible")) << facts.name;
  EXPECT_TRUE(mentions(facts.reason, "CUDA_VISIBLE_DEVICES")) << facts.reason;
}

TEST(Device, OneOfAnotherArchitectureIsToldWhatTheBuildHoldsAndHowToBuildForIt) {
  for (const cudaError_t status : {cudaErrorNoKernelImageForDevice, cudaErrorInvalidDeviceFunction}) {
    const DeviceFacts facts = facts_of(on_device(status, "NVIDIA A100", 8, 0));
    EXPECT_FALSE(facts.is_usable);
    EXPECT_TRUE(facts.name.starts_with("none: device 0 is NVIDIA A100 sm_80, this build holds kernels for sm_"))
        << facts.name;
    EXPECT_TRUE(mentions(facts.reason, "-DCMAKE_CUDA_ARCHITECTURES=80")) << facts.reason;
  }
}

// A full or broken device that were called missing would turn every case of a run into a skip.
TEST(Device, OneThatIsFullOrBrokenIsFailingAndNotMissing) {
  const DeviceFacts full = facts_of(on_device(cudaErrorMemoryAllocation, "NVIDIA H200", 9, 0));
  EXPECT_FALSE(full.is_usable);
  EXPECT_EQ(full.failure, cudaErrorMemoryAllocation);
  EXPECT_TRUE(full.name.starts_with("failing: device 0, NVIDIA H200 sm_90, does not start: cudaErrorMemoryAllocation"))
      << full.name;
  const DeviceFacts unknown = facts_of(answered(cudaErrorUnknown));
  EXPECT_TRUE(unknown.name.starts_with("failing: CUDA does not start: cudaErrorUnknown")) << unknown.name;
}

}  // namespace
}  // namespace assay::fast
