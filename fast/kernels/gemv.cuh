// What the products of few rows share: reads of what is read once, copies to shared memory that run ahead, and sums
// over a warp of many values at a time.
#pragma once

#include <cuda_runtime.h>

#include <cstring>

#include "fast/kernels/async_copy.cuh"
#include "fast/kernels/launch.cuh"
#include "fast/kernels/reduce.cuh"
#include "fast/kernels/storage.cuh"

namespace assay::fast {

// load_pack of memory that nobody else reads soon: it leaves the first-level cache to the operands that are shared.
template <int kWidth, typename T>
__device__ inline void load_pack_once(const T* from, float (&to)[kWidth]) {
  Pack<T, kWidth> pack;
  if constexpr (sizeof(pack) == 16) {
    uint4 bits;
    asm("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
        : "=r"(bits.x), "=r"(bits.y), "=r"(bits.z), "=r"(bits.w)
        : "l"(__cvta_generic_to_global(from)));
    memcpy(&pack, &bits, sizeof(pack));
  } else {
    pack = *reinterpret_cast<const Pack<T, kWidth>*>(from);
  }
#pragma unroll
  for (int i = 0; i < kWidth; ++i) to[i] = to_float(pack.at[i]);
}

// Starts a copy of 16 bytes, past the first-level cache and the registers.
__device__ inline void copy_async(void* to_shared, const void* from) {
  asm volatile(
      "cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(static_cast<unsigned>(__cvta_generic_to_shared(to_shared))),
      "l"(__cvta_generic_to_global(from))
      : "memory");
}

// The sums over the warp of kCount values (a power of two, at most kWarp), each by the tree of sum_lanes; lane l gets
// that of values[l / (kWarp / kCount)].
template <int kOffset = kWarp / 2, int kCount>
__device__ inline float sum_lanes_each(const float (&values)[kCount]) {
  if constexpr (kCount == 1) {
    return sum_lanes<2 * kOffset>(values[0]);
  } else {
    const bool is_upper = (threadIdx.x & kOffset) != 0;
    float half[kCount / 2];
#pragma unroll
    for (int i = 0; i < kCount / 2; ++i) {
      const float low = values[i], high = values[i + kCount / 2];
      half[i] = (is_upper ? high : low) + __shfl_xor_sync(kFullWarp, is_upper ? low : high, kOffset);
    }
    return sum_lanes_each<kOffset / 2>(half);
  }
}

}  // namespace assay::fast
