#include "fast/device/check.hpp"
#include "fast/device/guard.hpp"

namespace assay::fast {

namespace {

constexpr int kThreads = 256;

__global__ void fill_kernel(uint32_t* base, int64_t words, int64_t payload_begin, int64_t payload_end) {
  const int64_t stride = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < words; i += stride)
    base[i] = i >= payload_begin && i < payload_end ? kPoison : kGuard;
}

__global__ void find_kernel(const GuardRegion* regions, int* first) {
  const GuardRegion region = regions[blockIdx.x];
  for (int64_t i = threadIdx.x; i < region.count; i += blockDim.x)
    if (region.words[i] != kGuard) atomicMin(first, static_cast<int>(blockIdx.x));
}

}  // namespace

void fill_guarded(uint32_t* base, int64_t words, int64_t payload_begin, int64_t payload_end, cudaStream_t stream) {
  if (words == 0) return;
  const int64_t blocks = (words + kThreads - 1) / kThreads;
  fill_kernel<<<static_cast<unsigned>(blocks < 4096 ? blocks : 4096), kThreads, 0, stream>>>(base, words, payload_begin,
                                                                                             payload_end);
  check_launch("fill_guarded");
}

void find_overwritten(const GuardRegion* regions, int count, int* first, cudaStream_t stream) {
  if (count == 0) return;
  find_kernel<<<static_cast<unsigned>(count), 128, 0, stream>>>(regions, first);
  check_launch("find_overwritten");
}

cudaError_t look_for_kernels() {
  cudaFuncAttributes attributes{};
  return cudaFuncGetAttributes(&attributes, fill_kernel);
}

}  // namespace assay::fast
