#include "fast/device/context.hpp"

#include <algorithm>

#include "fast/device/check.hpp"
#include "fast/device/device.hpp"

namespace assay::fast {

Stream::Stream() {
  require_device();
  check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
}

void Context::record(std::string_view kernel) {
  if (std::find(kernels_.begin(), kernels_.end(), kernel) == kernels_.end()) kernels_.emplace_back(kernel);
}

void Context::synchronize(const char* what) { check(cudaStreamSynchronize(stream()), what); }

}  // namespace assay::fast
