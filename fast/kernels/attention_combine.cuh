// attention_decode's second kernel: the parts of a row, each with a maximum of its own, weighed and added. Parts go to
// teams in turn and a team adds its own in ascending order, then the teams are added likewise.
#pragma once

#include "fast/kernels/attention_columns.cuh"
#include "fast/kernels/attention_split.cuh"
#include "fast/kernels/launch.cuh"
#include "fast/kernels/math.hpp"
#include "fast/kernels/reduce.cuh"
#include "fast/kernels/storage.cuh"

namespace assay::fast {

inline constexpr int kCombineThreads = 128;
inline constexpr int kCombineLanes = 16;  // packs of a row that a team combines, and parts that it reads at a time
inline constexpr int kCombineTeams = kCombineThreads / kCombineLanes;
inline constexpr int64_t kManyRows = 1024;  // slices of rows; a team each keeps the device busy

__device__ inline float max_of_team(float value) {
#pragma unroll
  for (int offset = kCombineLanes / 2; offset > 0; offset /= 2) {
    const float other = __shfl_xor_sync(kFullWarp, value, offset);
    value = other > value ? other : value;
  }
  return value;
}

// kTeams: how many share the parts of a row.
template <typename T, int kWidth, int kTeams>
__global__ void __launch_bounds__(kCombineThreads)
    attention_combine_kernel(AttentionParams<T> p, AttentionSplit split, AttentionParts parts) {
  constexpr int kItems = kCombineTeams / kTeams;  // of a block at a time
  alignas(16) __shared__ float total_of[kCombineTeams][kCombineLanes * kWidth];
  __shared__ float most_of[kCombineTeams], sum_of[kCombineTeams];
  const int lane = static_cast<int>(threadIdx.x) % kCombineLanes;
  const int team = static_cast<int>(threadIdx.x) / kCombineLanes;
  const int64_t group = p.heads / p.kv_heads;
  const int64_t columns = past_of(p) + p.length;
  const int64_t count = ceil_div(columns, split.columns_of_one(columns));
  const int64_t slices = ceil_div(p.value_width, kCombineLanes * kWidth);
  const int64_t items = p.batch * p.kv_heads * split.rows * slices;
  for (int64_t base = int64_t{blockIdx.x} * kItems; base < items; base += int64_t{gridDim.x} * kItems) {
    const int64_t item = min(base + team / kTeams, items - 1);
    const int64_t pair_row = item / slices;
    const int64_t d = ((item - pair_row * slices) * kCombineLanes + lane) * kWidth;
    const int64_t pair = pair_row / split.rows;
    const int64_t row = pair_row - pair * split.rows;
    const int64_t batch = pair / p.kv_heads;
    const int64_t kv_head = pair - batch * p.kv_heads;
    const int64_t l = row / group;
    const float* part_most = parts.most + pair_row * split.parts;
    const float* part_sum = parts.sum + pair_row * split.parts;
    const float* value = parts.value + pair_row * split.parts * p.value_width + d;

    float most = kUnseen, sum = 0, total[kWidth] = {};
    for (int64_t start = 0; start < count; start += kCombineLanes * kTeams) {  // as often in every team of a warp
      const int64_t first = start + team % kTeams;
      float from[kCombineLanes][kWidth] = {};
#pragma unroll
      for (int j = 0; j < kCombineLanes; ++j) {
        const int64_t part = first + j * kTeams;
        if (part < count && d < p.value_width) load_pack<kWidth>(value + part * p.value_width, from[j]);
      }
      // Each lane weighs one of the parts.
      const int64_t own = first + lane * kTeams;
      const float own_most = own < count ? part_most[own] : kAbsent;
      const float own_sum = own < count ? part_sum[own] : 0.0f;
      float now_most = max_of_team(own_most);
      now_most = most > now_most ? most : now_most;
      const float weight = precise_exp(own_most - now_most), fade = precise_exp(most - now_most);
      most = now_most;
      sum = fmaf(weight, own_sum, sum * fade);
#pragma unroll
      for (int i = 0; i < kWidth; ++i) total[i] *= fade;
#pragma unroll
      for (int j = 0; j < kCombineLanes; ++j) {
        const float weight_of = __shfl_sync(kFullWarp, weight, j, kCombineLanes);
#pragma unroll
        for (int i = 0; i < kWidth; ++i) total[i] = fmaf(weight_of, from[j][i], total[i]);
      }
    }
    sum = sum_lanes<kCombineLanes>(sum);
    if constexpr (kTeams > 1) {
      store_pack<kWidth>(&total_of[team][lane * kWidth], total);
      if (lane == 0) {
        most_of[team] = most;
        sum_of[team] = sum;
      }
      __syncthreads();
      if (team < kWarp / kCombineLanes) {  // a warp, of which the first team writes
        most = max_of_team(lane < kTeams ? most_of[lane] : kUnseen);
        const float own_share = lane < kTeams ? precise_exp(most_of[lane] - most) : 0.0f;
        sum = sum_lanes<kCombineLanes>(lane < kTeams ? own_share * sum_of[lane] : 0.0f);
#pragma unroll
        for (int i = 0; i < kWidth; ++i) total[i] = 0;
#pragma unroll
        for (int t = 0; t < kTeams; ++t) {
          const float share = __shfl_sync(kFullWarp, own_share, t, kCombineLanes);
          float from[kWidth];
          load_pack<kWidth>(&total_of[t][lane * kWidth], from);
#pragma unroll
          for (int i = 0; i < kWidth; ++i) total[i] = fmaf(share, from[i], total[i]);
        }
      }
      __syncthreads();  // the next item overwrites them
    }
    if (team % kTeams == 0 && base + team / kTeams < items && d < p.value_width) {
#pragma unroll
      for (int i = 0; i < kWidth; ++i) total[i] /= sum;
      store_pack<kWidth>(
          p.y + ((batch * p.length + l) * p.heads + kv_head * group + row - l * group) * p.value_width + d, total);
    }
  }
}

template <typename T, int kWidth>
void start_combine(const AttentionParams<T>& p, const AttentionSplit& split, const AttentionParts& parts,
                   cudaStream_t stream) {
  const int64_t items = p.batch * p.kv_heads * split.rows * ceil_div(p.value_width, kCombineLanes * kWidth);
  if (items > kManyRows) {
    launch("attention_decode", attention_combine_kernel<T, kWidth, 1>, ceil_div(items, kCombineTeams), kCombineThreads,
           stream, p, split, parts);
  } else {
    launch("attention_decode", attention_combine_kernel<T, kWidth, kCombineTeams>, items, kCombineThreads, stream, p,
           split, parts);
  }
}

}  // namespace assay::fast
