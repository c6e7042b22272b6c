#include "fast/device/device.hpp"

#include "cases/spec/error.hpp"
#include "fast/device/guard.hpp"

#ifndef ASSAY_FAST_ARCHITECTURES
#define ASSAY_FAST_ARCHITECTURES "90"
#endif

namespace assay::fast {

namespace {

std::string dotted(int version) { return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10); }

std::string described(cudaError_t status) {
  return std::string(cudaGetErrorName(status)) + " (" + cudaGetErrorString(status) + ")";
}

StartedCuda start() {
  StartedCuda started;
  if (cudaDriverGetVersion(&started.driver) != cudaSuccess) started.driver = 0;
  started.status = cudaGetDeviceCount(&started.devices);
  if (started.status == cudaSuccess && started.devices == 0) started.status = cudaErrorNoDevice;
  if (started.status == cudaSuccess) started.status = cudaGetDeviceProperties(&started.properties, 0);
  if (started.status == cudaSuccess) started.status = cudaSetDevice(0);
  if (started.status == cudaSuccess) started.status = look_for_kernels();
  cudaGetLastError();
  return started;
}

}  // namespace

DeviceFacts facts_of(const StartedCuda& started) {
  DeviceFacts facts;
  facts.versions = {"cuda " + dotted(CUDART_VERSION),
                    "driver " + (started.driver == 0 ? "none" : dotted(started.driver))};
  std::string device;
  if (started.properties.name[0] != '\0') {
    facts.architecture = "sm_" + std::to_string(started.properties.major * 10 + started.properties.minor);
    device = std::string(started.properties.name) + " " + facts.architecture;
    facts.multiprocessors = started.properties.multiProcessorCount;
    facts.l2_bytes = started.properties.l2CacheSize;
  }
  switch (started.status) {
    case cudaSuccess:
      facts.is_usable = true;
      facts.name = device;
      return facts;
    case cudaErrorNoDevice:
      facts.reason =
          "no CUDA device is visible (nvidia-smi lists those of the machine, CUDA_VISIBLE_DEVICES hides some)";
      break;
    case cudaErrorInsufficientDriver:
      facts.reason = started.driver == 0
                         ? "no NVIDIA driver is installed"
                         : "the driver supports CUDA " + dotted(started.driver) + ", this build needs " +
                               dotted(CUDART_VERSION) + "; install a newer driver, or build with an older CUDA toolkit";
      break;
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorInvalidDeviceFunction:
      facts.reason = "device 0 is " + device +
                     ", this build holds kernels for sm_" ASSAY_FAST_ARCHITECTURES
                     " only; configure with -DCMAKE_CUDA_ARCHITECTURES=" +
                     std::to_string(started.properties.major * 10 + started.properties.minor);
      break;
    default:
      facts.failure = started.status;
      facts.reason =
          (device.empty() ? "CUDA" : "device 0, " + device + ",") + " does not start: " + described(started.status);
      facts.name = "failing: " + facts.reason;
      return facts;
  }
  facts.name = "none: " + facts.reason;
  return facts;
}

const DeviceFacts& device_facts() {
  static const DeviceFacts facts = facts_of(start());
  return facts;
}

void require_device() {
  const DeviceFacts& facts = device_facts();
  if (facts.is_usable) return;
  if (facts.failure == cudaErrorMemoryAllocation) throw MemoryError("fast", facts.reason);
  if (facts.failure != cudaSuccess)
    throw HarnessError("fast", facts.reason, "nvidia-smi shows the state of the device and who else uses it");
  throw UnsupportedError("fast", "no gpu: " + facts.reason);
}

}  // namespace assay::fast
