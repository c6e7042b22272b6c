#include "fast/kernels/expert_order.cuh"
#include "fast/kernels/experts_require.hpp"
#include "fast/kernels/launch.cuh"

namespace assay::fast {
namespace {

constexpr int kBatch = 16;  // reads in flight: chunks whose counts a thread reads, pairs of a lane
static_assert(kOrderChunk % (kBatch * kWarp) == 0);

__device__ inline int lanes_below() { return static_cast<int>((1u << (threadIdx.x % kWarp)) - 1); }

// Of every kWarp-th pair; -1 past the last.
__device__ inline void read_experts(const ExpertOrder& p, int64_t first, int (&experts)[kBatch]) {
#pragma unroll
  for (int i = 0; i < kBatch; ++i) {
    const int64_t pair = first + i * kWarp;
    experts[i] = pair < p.pairs ? p.experts[pair] : -1;
  }
}

// One warp a chunk.
__global__ void __launch_bounds__(kWarp) expert_count_kernel(ExpertOrder p) {
  __shared__ int counts[kMostExperts];
  const int lane = static_cast<int>(threadIdx.x);
  for (int64_t chunk = blockIdx.x; chunk < p.chunks; chunk += gridDim.x) {
    for (int e = lane; e < p.count; e += kWarp) counts[e] = 0;
    __syncwarp();
    for (int64_t batch = 0; batch < kOrderChunk; batch += kBatch * kWarp) {
      int experts[kBatch];
      read_experts(p, chunk * kOrderChunk + batch + lane, experts);
#pragma unroll
      for (int i = 0; i < kBatch; ++i) {
        if (experts[i] >= 0) atomicAdd(&counts[experts[i]], 1);
      }
    }
    __syncwarp();
    for (int e = lane; e < p.count; e += kWarp) p.counts[chunk * p.count + e] = counts[e];
    __syncwarp();
  }
}

// Over the block, exclusive; total in all threads. partial: kWarp + 1 integers.
__device__ inline int prefix_of_block(int value, int* partial, int& total) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp, warp = static_cast<int>(threadIdx.x) / kWarp;
  const int warps = static_cast<int>(blockDim.x) / kWarp;
  int sum = value;
#pragma unroll
  for (int offset = 1; offset < kWarp; offset *= 2) {
    const int below = __shfl_up_sync(kFullWarp, sum, offset);
    if (lane >= offset) sum += below;
  }
  __syncthreads();  // an earlier call's partial sums have been read
  if (lane == kWarp - 1) partial[warp] = sum;
  __syncthreads();
  int before = 0;
  total = 0;
  for (int w = 0; w < warps; ++w) {
    if (w < warp) before += partial[w];
    total += partial[w];
  }
  return before + sum - value;
}

// One block, a thread an expert.
__global__ void __launch_bounds__(static_cast<int>(kMostExperts)) expert_offset_kernel(ExpertOrder p) {
  __shared__ int partial[kWarp];
  const int e = static_cast<int>(threadIdx.x);
  const bool is_expert = e < p.count;
  int count = 0;
  for (int64_t chunk = 0; chunk < p.chunks; chunk += kBatch) {
    int of_chunk[kBatch];
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
      of_chunk[i] = is_expert && chunk + i < p.chunks ? p.counts[(chunk + i) * p.count + e] : 0;
    }
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
      if (is_expert && chunk + i < p.chunks) p.counts[(chunk + i) * p.count + e] = count;
      count += of_chunk[i];
    }
  }
  const int tile_rows = static_cast<int>(p.tile_rows);
  const int tile_count = (count + tile_rows - 1) / tile_rows;
  int pairs = 0, tiles = 0;
  const int offset = prefix_of_block(count, partial, pairs);
  const int first_tile = prefix_of_block(tile_count, partial, tiles);
  if (is_expert) {
    p.offsets[e] = offset;
    p.tiles[e] = first_tile;
    for (int i = 0; i < tile_count; ++i) p.tile_expert[first_tile + i] = e;
  }
  if (e == 0) {
    p.offsets[p.count] = pairs;
    p.tiles[p.count] = tiles;
  }
}

// One warp a chunk, 32 pairs at a time: a pair's place is its expert's next one, after the pairs of lower lanes.
__global__ void __launch_bounds__(kWarp) expert_place_kernel(ExpertOrder p) {
  __shared__ int next[kMostExperts];
  const int lane = static_cast<int>(threadIdx.x);
  for (int64_t chunk = blockIdx.x; chunk < p.chunks; chunk += gridDim.x) {
    for (int e = lane; e < p.count; e += kWarp) next[e] = p.offsets[e] + p.counts[chunk * p.count + e];
    __syncwarp();
    for (int64_t batch = 0; batch < kOrderChunk; batch += kBatch * kWarp) {
      const int64_t first = chunk * kOrderChunk + batch + lane;
      int experts[kBatch];
      read_experts(p, first, experts);
#pragma unroll
      for (int i = 0; i < kBatch; ++i) {
        const int64_t pair = first + i * kWarp;
        const int expert = experts[i];
        const unsigned alike = __match_any_sync(kFullWarp, expert);
        const int rank = __popc(alike & static_cast<unsigned>(lanes_below()));
        const int place = expert < 0 ? 0 : next[expert] + rank;
        __syncwarp();
        if (expert >= 0) {
          p.order[place] = static_cast<int32_t>(pair);
          p.place_of[pair] = place;
          if (rank == 0) next[expert] += __popc(alike);
        }
        __syncwarp();
      }
    }
  }
}

}  // namespace

void order_by_expert(const ExpertOrder& order, cudaStream_t stream) {
  launch("expert_count", expert_count_kernel, order.chunks, kWarp, stream, order);
  launch("expert_offset", expert_offset_kernel, 1, static_cast<int>(ceil_div(order.count, kWarp)) * kWarp, stream,
         order);
  launch("expert_place", expert_place_kernel, order.chunks, kWarp, stream, order);
}

}  // namespace assay::fast
