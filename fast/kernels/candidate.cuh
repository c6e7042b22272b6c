// A logit and its place as one number: of two, the larger is the larger value or, of equal values, the lower place.
#pragma once

#include "fast/kernels/launch.cuh"
#include "fast/kernels/order_key.hpp"

namespace assay::fast {

using Candidate = unsigned long long;  // key of the value above, complement of the place below; never 0

__device__ inline Candidate candidate_of_key(uint32_t key, int64_t place) {
  return Candidate{key} << 32 | (0xffffffffu - static_cast<uint32_t>(place));
}
__device__ inline Candidate make_candidate(float value, int64_t place) {
  return candidate_of_key(order_key(value), place);
}
__device__ inline int64_t place_of(Candidate candidate) { return 0xffffffffu - static_cast<uint32_t>(candidate); }
__device__ inline float value_of(Candidate candidate) { return from_order_key(static_cast<uint32_t>(candidate >> 32)); }

__device__ inline Candidate larger(Candidate a, Candidate b) { return a > b ? a : b; }

// Over a warp, in all of its lanes.
__device__ inline Candidate largest_of_warp(Candidate value) {
  const uint32_t key = static_cast<uint32_t>(value >> 32);
  const uint32_t most = __reduce_max_sync(kFullWarp, key);
  const uint32_t rest = __reduce_max_sync(kFullWarp, key == most ? static_cast<uint32_t>(value) : 0u);
  return Candidate{most} << 32 | rest;
}

// How many of list[0 .. count) are above value.
__device__ inline int rank_in(const Candidate* list, int count, Candidate value) {
  int rank = 0;
#pragma unroll 4
  for (int i = 0; i < count; ++i) rank += list[i] > value ? 1 : 0;
  return rank;
}

// Over a block of kThreads, in all of them. partial: one for each warp.
template <int kThreads>
__device__ inline Candidate largest_of_block(Candidate value, Candidate* partial) {
  value = largest_of_warp(value);
  __syncthreads();  // an earlier call's have been read
  if (threadIdx.x % kWarp == 0) partial[threadIdx.x / kWarp] = value;
  __syncthreads();
#pragma unroll
  for (int w = 0; w < kThreads / kWarp; ++w) value = larger(value, partial[w]);
  return value;
}

}  // namespace assay::fast
