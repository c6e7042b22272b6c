// A logit and its place as one number: of two, the larger is the larger value or, of equal values, the lower place.
#pragma once

#include "fast/kernels/launch.cuh"
#include "fast/kernels/order_key.hpp"

namespace assay::fast {

using Candidate = unsigned long long;  // key of the value above, complement of the place below; never 0

__device__ inline Candidate make_candidate(float value, int64_t place) {
  return Candidate{order_key(value)} << 32 | (0xffffffffu - static_cast<uint32_t>(place));
}
__device__ inline int64_t place_of(Candidate candidate) { return 0xffffffffu - static_cast<uint32_t>(candidate); }
__device__ inline float value_of(Candidate candidate) { return from_order_key(static_cast<uint32_t>(candidate >> 32)); }

__device__ inline Candidate larger(Candidate a, Candidate b) { return a > b ? a : b; }

// Over a block of kThreads, in all of them. partial: one for each warp.
template <int kThreads>
__device__ inline Candidate largest_of_block(Candidate value, Candidate* partial) {
#pragma unroll
  for (int offset = kWarp / 2; offset > 0; offset /= 2)
    value = larger(value, __shfl_xor_sync(kFullWarp, value, offset));
  __syncthreads();  // an earlier call's have been read
  if (threadIdx.x % kWarp == 0) partial[threadIdx.x / kWarp] = value;
  __syncthreads();
#pragma unroll
  for (int w = 0; w < kThreads / kWarp; ++w) value = larger(value, partial[w]);
  return value;
}

}  // namespace assay::fast
