// Sums in a fixed order: a butterfly inside a warp, then over the warps of a block. Every thread gets the sum.
#pragma once

#include "fast/kernels/launch.cuh"

namespace assay::fast {

// Over each run of kLanes neighbouring lanes (a power of two). All lanes of the warp must take part.
template <int kLanes>
__device__ inline float sum_lanes(float value) {
#pragma unroll
  for (int offset = kLanes / 2; offset > 0; offset /= 2) value += __shfl_xor_sync(kFullWarp, value, offset);
  return value;
}

// partial: kWarp floats of shared memory. blockDim.x is a multiple of kWarp; all threads take part. May be called again
// with the same partial.
__device__ inline float sum_block(float value, float* partial) {
  value = sum_lanes<kWarp>(value);
  const int warps = static_cast<int>(blockDim.x) / kWarp;
  if (warps == 1) return value;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  __syncthreads();  // the sums of an earlier call have been read
  if (lane == 0) partial[threadIdx.x / kWarp] = value;
  __syncthreads();
  return sum_lanes<kWarp>(lane < warps ? partial[lane] : 0.0f);
}

}  // namespace assay::fast
