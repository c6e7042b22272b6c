// launch: starts a kernel on a one-dimensional grid and checks that the launch was accepted. The number of blocks is
// capped, so every kernel walks its work by grid strides and no size of a problem meets a grid limit.
// launch_shared: the same, with dynamic shared memory, which the kernel reaches by dynamic_shared().
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "fast/device/check.hpp"

namespace assay::fast {

inline constexpr int64_t kMaxBlocks = int64_t{1} << 30;
inline constexpr int kWarp = 32;
inline constexpr unsigned kFullWarp = 0xffffffffu;

__host__ __device__ constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

template <typename... Parameters>
void launch(const char* what, void (*kernel)(Parameters...), int64_t blocks, int threads, cudaStream_t stream,
            const std::type_identity_t<Parameters>&... arguments) {
  kernel<<<static_cast<unsigned>(std::min(blocks, kMaxBlocks)), static_cast<unsigned>(threads), 0, stream>>>(
      arguments...);
  check_launch(what);
}

template <typename... Parameters>
void launch_shared(const char* what, void (*kernel)(Parameters...), int64_t blocks, int threads, int shared_bytes,
                   cudaStream_t stream, const std::type_identity_t<Parameters>&... arguments) {
  constexpr int kWithoutAsking = 48 << 10;
  if (shared_bytes > kWithoutAsking) {
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes), what);
  }
  kernel<<<static_cast<unsigned>(std::min(blocks, kMaxBlocks)), static_cast<unsigned>(threads),
           static_cast<size_t>(shared_bytes), stream>>>(arguments...);
  check_launch(what);
}

// 16-byte aligned.
__device__ inline float* dynamic_shared() {
  extern __shared__ float4 block_memory[];
  return reinterpret_cast<float*>(block_memory);
}

}  // namespace assay::fast
