// attention_decode's split of the keys over blocks, and where the blocks leave their parts.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "fast/kernels/attention.hpp"
#include "fast/kernels/launch.cuh"

namespace assay::fast {

inline constexpr int kSplitKeys = kWarp;       // keys of a step: one for each lane of a warp
inline constexpr int kSplitRows = 16;          // rows (query, head of the group) of a block; heads fastest
inline constexpr int64_t kEnoughBlocks = 512;  // about four a multiprocessor

// How the keys are cut. Every block of a (batch row, key head, chunk of rows) gets a multiple of kSplitKeys columns. It
// follows from shapes and from the number of columns alone, so that graph and eager call, or caches of unlike capacity,
// sum in the same order.
struct AttentionSplit {
  int64_t rows = 0;         // of one key head: L * nq / nkv
  int64_t row_chunks = 0;   // of at most kSplitRows
  int64_t most_splits = 0;  // at any number of columns
  int64_t parts = 0;        // most_splits that the cache's capacity leaves: the grid's and the workspace's
  __host__ __device__ int64_t columns_of_one(int64_t columns) const {
    return ceil_div(columns, kSplitKeys * most_splits) * kSplitKeys;
  }
};

template <typename T>
AttentionSplit split_attention(const AttentionParams<T>& p) {
  AttentionSplit split;
  split.rows = p.length * (p.heads / p.kv_heads);
  split.row_chunks = ceil_div(split.rows, kSplitRows);
  split.most_splits = ceil_div(kEnoughBlocks, p.batch * p.kv_heads * split.row_chunks);
  split.parts = std::min(split.most_splits, ceil_div(p.capacity, kSplitKeys));
  return split;
}

// Parts of a row of y: [B * nkv * rows, parts], the values with their lanes behind that.
struct AttentionParts {
  float* most = nullptr;
  float* sum = nullptr;
  float* value = nullptr;
  size_t bytes = 0;
};

template <typename T>
AttentionParts lay_out_parts(const AttentionParams<T>& p, const AttentionSplit& split) {
  const int64_t count = p.batch * p.kv_heads * split.rows * split.parts;
  AttentionParts parts;
  parts.bytes = static_cast<size_t>(count * (p.value_width + 2)) * sizeof(float);
  if (p.workspace != nullptr) {
    parts.value = static_cast<float*>(p.workspace);
    parts.most = parts.value + count * p.value_width;
    parts.sum = parts.most + count;
  }
  return parts;
}

}  // namespace assay::fast
