#include "fast/device/device.hpp"

#include <cuda_runtime_api.h>

#include "cases/spec/error.hpp"
#include "fast/device/guard.hpp"

#ifndef ASSAY_FAST_ARCHITECTURES
#define ASSAY_FAST_ARCHITECTURES "90"
#endif

namespace assay::fast {

namespace {

std::string dotted(int version) { return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10); }

std::string reason_of(cudaError_t status, int driver) {
  if (status == cudaErrorNoDevice) return "no CUDA device is visible";
  if (status == cudaErrorInsufficientDriver)
    return driver == 0 ? "no NVIDIA driver is installed"
                       : "the driver supports CUDA " + dotted(driver) + ", this build needs " + dotted(CUDART_VERSION);
  return std::string("CUDA cannot start: ") + cudaGetErrorName(status) + " (" + cudaGetErrorString(status) + ")";
}

DeviceFacts look() {
  DeviceFacts facts;
  int driver = 0;
  if (cudaDriverGetVersion(&driver) != cudaSuccess) driver = 0;
  facts.versions = {"cuda " + dotted(CUDART_VERSION), "driver " + (driver == 0 ? "none" : dotted(driver))};

  int count = 0;
  cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaSuccess && count == 0) status = cudaErrorNoDevice;
  cudaDeviceProp properties{};
  if (status == cudaSuccess) status = cudaSetDevice(0);
  if (status == cudaSuccess) status = cudaGetDeviceProperties(&properties, 0);
  if (status != cudaSuccess) {
    cudaGetLastError();
    facts.reason = reason_of(status, driver);
    facts.name = "none: " + facts.reason;
    return facts;
  }
  facts.architecture = "sm_" + std::to_string(properties.major * 10 + properties.minor);
  facts.name = std::string(properties.name) + " " + facts.architecture;
  facts.multiprocessors = properties.multiProcessorCount;
  facts.l2_bytes = properties.l2CacheSize;
  if (!kernels_fit_device()) {
    cudaGetLastError();
    facts.reason = "device 0 is " + facts.name +
                   ", this build holds kernels for sm_" ASSAY_FAST_ARCHITECTURES " only (CMAKE_CUDA_ARCHITECTURES)";
    facts.name = "none: " + facts.reason;
    return facts;
  }
  facts.is_usable = true;
  return facts;
}

}  // namespace

const DeviceFacts& device_facts() {
  static const DeviceFacts facts = look();
  return facts;
}

void require_device() {
  const DeviceFacts& facts = device_facts();
  if (!facts.is_usable) throw UnsupportedError("fast", "no gpu: " + facts.reason);
}

}  // namespace assay::fast
