#include "fast/device/check.hpp"
#include "fast/device/device.hpp"
#include "fast/kernels/launch.cuh"
#include "fast/ops/flush_l2.hpp"

namespace assay::fast {
namespace {

constexpr int kThreads = 512;
constexpr int kBlocks = 4;  // of a multiprocessor

__global__ void __launch_bounds__(kThreads) read_kernel(uint4* words, int64_t count) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
  unsigned any = 0;
#pragma unroll 4
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < count; i += step) {
    const uint4 word = words[i];
    any |= word.x | word.y | word.z | word.w;
  }
  // Never: a store that the loads are for.
  if (any != 0) words[0] = uint4{};
}

}  // namespace

void flush_l2(void* scratch, int64_t bytes, cudaStream_t stream) {
  check(cudaMemsetAsync(scratch, 0, static_cast<size_t>(bytes), stream), "L2 flush");
  launch("L2 flush", read_kernel, int64_t{device_facts().multiprocessors} * kBlocks, kThreads, stream,
         static_cast<uint4*>(scratch), bytes / static_cast<int64_t>(sizeof(uint4)));
}

}  // namespace assay::fast
