#include "fast/device/check.hpp"

#include <string>

#include "cases/spec/error.hpp"

namespace assay::fast {

void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // a code that is not sticky would otherwise be blamed on the next launch
  const std::string text = std::string(cudaGetErrorName(status)) + " (" + cudaGetErrorString(status) + ")";
  if (status == cudaErrorMemoryAllocation) {
    size_t free = 0, total = 0;
    const bool known = cudaMemGetInfo(&free, &total) == cudaSuccess;
    const std::string sizes = known ? ", " + std::to_string(free) + " of " + std::to_string(total) + " bytes free" : "";
    throw MemoryError(what, text + sizes);
  }
  throw HarnessError(
      what, text,
      "errors of earlier kernels also show here; compute-sanitizer, or CUDA_LAUNCH_BLOCKING=1, names the "
      "first one");
}

void check_launch(const char* kernel) { check(cudaGetLastError(), kernel); }

}  // namespace assay::fast
