#include "fast/kernels/attention.hpp"
#include "fast/kernels/attention_columns.cuh"
#include "fast/kernels/attention_require.hpp"
#include "fast/kernels/attention_split.cuh"
#include "fast/kernels/launch.cuh"
#include "fast/kernels/math.hpp"
#include "fast/kernels/reduce.cuh"
#include "fast/kernels/storage.cuh"

namespace assay::fast {
namespace {

constexpr int kThreads = 128;
constexpr int kWarps = kThreads / kWarp;
constexpr int kMostParts = kEnoughBlocks;
constexpr int kLanesPerKey = 8;  // a warp reads four keys at a time, 128 neighbouring bytes of each

// kWidth: elements of an access; kRows: rows that a block keeps, at least as many as there are.
template <typename T, int kWidth, int kRows>
__global__ void __launch_bounds__(kThreads)
    attention_split_kernel(AttentionParams<T> p, AttentionSplit split, AttentionParts parts) {
  alignas(16) __shared__ float query[kRows][kWidestHead];
  alignas(16) __shared__ float combined[kThreads * kWidth];
  __shared__ float weights[kRows][kSplitKeys];
  __shared__ float most[kRows], sum[kRows], fade[kRows];
  __shared__ int64_t limit[kRows];  // the row's own column, the last that it sees
  constexpr int kSteps = static_cast<int>(kWidestHead) / (kLanesPerKey * kWidth);
  constexpr int kPasses = static_cast<int>(kWidestHead) / kWidth > kThreads ? 2 : 1;

  const int thread = static_cast<int>(threadIdx.x);
  const int lane = thread % kWarp, warp = thread / kWarp;
  const int64_t group = p.heads / p.kv_heads;
  const int64_t past = past_of(p);
  const int64_t columns = past + p.length;
  const int64_t columns_of_one = split.columns_of_one(columns);
  // Threads over the values: value_lanes side by side, the others take other keys.
  const int value_packs = static_cast<int>(p.value_width) / kWidth;
  int value_lanes = 1;
  while (value_lanes < value_packs && value_lanes < kThreads) value_lanes *= 2;
  const int value_lane = thread % value_lanes, value_key = thread / value_lanes;
  const int value_keys = kThreads / value_lanes;

  for (int64_t item = blockIdx.x; item < p.batch * p.kv_heads * split.row_chunks * split.parts; item += gridDim.x) {
    const int64_t part = item % split.parts;
    const int64_t pair_chunk = item / split.parts;
    const int64_t pair = pair_chunk / split.row_chunks;
    const int64_t first_row = (pair_chunk - pair * split.row_chunks) * kSplitRows;
    const int row_count = static_cast<int>(min(split.rows - first_row, int64_t{kRows}));
    const int64_t batch = pair / p.kv_heads;
    const int64_t kv_head = pair - batch * p.kv_heads;
    const int64_t first = part * columns_of_one;
    const int64_t end = min(first + columns_of_one, columns);
    if (first >= end) continue;  // alike in all threads
    const T* keys = p.k + pair * p.capacity * p.width;
    const T* values = p.v + pair * p.capacity * p.value_width;
    const uint8_t* mask = p.mask == nullptr ? nullptr : p.mask + batch * p.mask_stride;

    __syncthreads();  // the item before has been read
    for (int e = thread; e < kRows * static_cast<int>(kWidestHead); e += kThreads) {
      const int r = e / static_cast<int>(kWidestHead), d = e % static_cast<int>(kWidestHead);
      const int64_t l = (first_row + r) / group;
      float element = 0;
      if (r < row_count && d < p.width) {
        element = to_float(p.q[(batch * p.length + l) * p.q_stride +
                               (kv_head * group + first_row + r - l * group) * p.q_head_stride + d]);
      }
      query[r][d] = element;
    }
    if (thread < kRows) {
      most[thread] = kUnseen;
      sum[thread] = 0;
      limit[thread] = past + (first_row + thread) / group;
    }
    float result[kPasses][kRows][kWidth] = {};
    __syncthreads();

    for (int64_t key = first; key < end; key += kSplitKeys) {
#pragma unroll
      for (int four = 0; four < kSplitKeys / kWarps; four += kWarp / kLanesPerKey) {
        const int at = warp * (kSplitKeys / kWarps) + four + lane / kLanesPerKey;
        const int64_t c = key + at;
        float dot[kRows] = {};
#pragma unroll 8
        for (int step = 0; step < kSteps; ++step) {
          const int d = (step * kLanesPerKey + lane % kLanesPerKey) * kWidth;
          if (c < end && d < p.width) {
            float k[kWidth];
            load_pack<kWidth>(keys + c * p.width + d, k);
#pragma unroll
            for (int r = 0; r < kRows; ++r) {
              float q[kWidth];
              load_pack<kWidth>(&query[r][d], q);
#pragma unroll
              for (int i = 0; i < kWidth; ++i) dot[r] = fmaf(q[i], k[i], dot[r]);
            }
          }
        }
        const bool is_real = c < end && (mask == nullptr || mask[c] != 0);
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
          const float score = sum_lanes<kLanesPerKey>(dot[r]) * p.scale;
          if (lane % kLanesPerKey == r % kLanesPerKey) {
            const bool is_seen = is_real && c <= limit[r];
            weights[r][at] = c >= end ? kAbsent : is_seen ? score : kUnseen;
          }
        }
      }
      __syncthreads();
      for (int r = warp; r < kRows; r += kWarps) {
        const float score = weights[r][lane];
        float now_most = score;
#pragma unroll
        for (int offset = kWarp / 2; offset > 0; offset /= 2) {
          const float other = __shfl_xor_sync(kFullWarp, now_most, offset);
          now_most = other > now_most ? other : now_most;
        }
        now_most = most[r] > now_most ? most[r] : now_most;
        const float weight = precise_exp(score - now_most);
        const float total = sum_lanes<kWarp>(weight);
        weights[r][lane] = weight;
        if (lane == 0) {
          fade[r] = precise_exp(most[r] - now_most);
          sum[r] = sum[r] * fade[r] + total;
        }
        __syncwarp();  // every lane has read the maximum so far
        if (lane == 0) most[r] = now_most;
      }
      __syncthreads();
#pragma unroll
      for (int pass = 0; pass < kPasses; ++pass) {
        const int d = (pass * kThreads + value_lane) * kWidth;
        // A step by itself, then onto the sum: the rounding of thousands of keys, one after the other, would pile up.
        float part[kRows][kWidth] = {};
        if (d < p.value_width) {
#pragma unroll 4
          for (int at = value_key; at < kSplitKeys; at += value_keys) {
            if (key + at >= end) break;
            float v[kWidth];
            load_pack<kWidth>(values + (key + at) * p.value_width + d, v);
#pragma unroll
            for (int r = 0; r < kRows; ++r) {
#pragma unroll
              for (int i = 0; i < kWidth; ++i) part[r][i] = fmaf(weights[r][at], v[i], part[r][i]);
            }
          }
        }
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
#pragma unroll
          for (int i = 0; i < kWidth; ++i) result[pass][r][i] = fmaf(result[pass][r][i], fade[r], part[r][i]);
        }
      }
      __syncthreads();
    }

#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      if (r >= row_count) continue;
      const int64_t at = (pair * split.rows + first_row + r) * split.parts + part;
#pragma unroll
      for (int pass = 0; pass < kPasses; ++pass) {
        __syncthreads();
        store_pack<kWidth>(combined + thread * kWidth, result[pass][r]);
        __syncthreads();
        const int d = (pass * kThreads + value_lane) * kWidth;
        if (value_key == 0 && d < p.value_width) {
          float total[kWidth] = {};
          for (int k = 0; k < value_keys; ++k) {
#pragma unroll
            for (int i = 0; i < kWidth; ++i) total[i] += combined[(k * value_lanes + value_lane) * kWidth + i];
          }
          store_pack<kWidth>(parts.value + at * p.value_width + d, total);
        }
      }
      if (thread == 0) {
        parts.most[at] = most[r];
        parts.sum[at] = sum[r];
      }
    }
  }
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    attention_combine_kernel(AttentionParams<T> p, AttentionSplit split, AttentionParts parts) {
  __shared__ float weight[kMostParts];
  __shared__ float partial[kWarp];
  const int thread = static_cast<int>(threadIdx.x);
  const int64_t group = p.heads / p.kv_heads;
  const int64_t columns = past_of(p) + p.length;
  const int count = static_cast<int>(ceil_div(columns, split.columns_of_one(columns)));
  for (int64_t item = blockIdx.x; item < p.batch * p.kv_heads * split.rows; item += gridDim.x) {
    const int64_t pair = item / split.rows;
    const int64_t row = item - pair * split.rows;
    const int64_t batch = pair / p.kv_heads;
    const int64_t kv_head = pair - batch * p.kv_heads;
    const int64_t l = row / group;
    const float* part_most = parts.most + item * split.parts;
    const float* part_sum = parts.sum + item * split.parts;
    const float* value = parts.value + item * split.parts * p.value_width;
    T* y = p.y + ((batch * p.length + l) * p.heads + kv_head * group + row - l * group) * p.value_width;
    float most = kUnseen;
    for (int i = thread; i < count; i += kThreads) most = part_most[i] > most ? part_most[i] : most;
    most = max_block(most, partial);
    float sum = 0;
    for (int i = thread; i < count; i += kThreads) {
      weight[i] = precise_exp(part_most[i] - most);
      sum = fmaf(weight[i], part_sum[i], sum);
    }
    sum = sum_block(sum, partial);  // its barriers also show every thread the weights
    for (int d = thread; d < p.value_width; d += kThreads) {
      float total = 0;
#pragma unroll 16
      for (int i = 0; i < count; ++i) total = fmaf(weight[i], value[i * p.value_width + d], total);
      y[d] = from_float<T>(total / sum);
    }
    __syncthreads();  // the weights have been read
  }
}

template <typename T, int kWidth>
void start(const AttentionParams<T>& p, const AttentionSplit& split, const AttentionParts& parts, cudaStream_t stream) {
  const int64_t items = p.batch * p.kv_heads * split.row_chunks * split.parts;
  const auto run = [&](auto kernel) { launch("attention_decode", kernel, items, kThreads, stream, p, split, parts); };
  if (split.rows <= 1) {
    run(attention_split_kernel<T, kWidth, 1>);
  } else if (split.rows <= 2) {
    run(attention_split_kernel<T, kWidth, 2>);
  } else if (split.rows <= 4) {
    run(attention_split_kernel<T, kWidth, 4>);
  } else if (split.rows <= 8) {
    run(attention_split_kernel<T, kWidth, 8>);
  } else {
    run(attention_split_kernel<T, kWidth, kSplitRows>);
  }
}

}  // namespace

template <typename T>
size_t attention_decode_workspace_bytes(const AttentionParams<T>& p) {
  require_attention_sizes("attention_decode", p);
  return lay_out_parts(p, split_attention(p)).bytes;
}

template <typename T>
void attention_decode(const AttentionParams<T>& p, cudaStream_t stream) {
  constexpr const char* kName = "attention_decode";
  require_attention_sizes(kName, p);
  require_attention_operands(kName, p);
  require_pointer(kName, "workspace", p.workspace);
  const AttentionSplit split = split_attention(p);
  const AttentionParts parts = lay_out_parts(p, split);
  constexpr int kWidth = kPackWidth<T>;
  if (is_packable<kWidth, T>({p.k, p.v}, {p.width, p.value_width})) {
    start<T, kWidth>(p, split, parts, stream);
  } else {
    start<T, 1>(p, split, parts, stream);
  }
  launch(kName, attention_combine_kernel<T>, p.batch * p.kv_heads * split.rows, kThreads, stream, p, split, parts);
}

template size_t attention_decode_workspace_bytes<float>(const AttentionParams<float>&);
template void attention_decode<float>(const AttentionParams<float>&, cudaStream_t);

}  // namespace assay::fast
