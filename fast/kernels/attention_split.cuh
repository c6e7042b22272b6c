// attention_decode's split of the keys over blocks, and where the blocks leave their parts.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "fast/kernels/attention.hpp"
#include "fast/kernels/launch.cuh"

namespace assay::fast {

// How a warp holds heads of some width.
template <int kLanesOf, int kElementsOf, int kKeysOf, int kSlotsOf, int kRowsOf>
struct HeadTile {
  static constexpr int kLanes = kLanesOf;        // side by side on one key
  static constexpr int kElements = kElementsOf;  // of a head in each of them
  static constexpr int kKeys = kKeysOf;          // that the warp takes at a time
  static constexpr int kSlots = kSlotsOf;        // tiles of keys or of values that are there or on their way
  static constexpr int kRows = kRowsOf;          // (query, head of the group), heads fastest: what the registers hold
};

// visit(the tile that holds heads of these widths)
template <typename Visit>
auto with_head_tile(int64_t width, int64_t value_width, Visit visit) {
  static_assert(kWidestHead <= 512);
  const int64_t widest = std::max(width, value_width);
  if (widest <= 64) return visit(HeadTile<16, 4, 8, 4, 16>());
  if (widest <= 128) return visit(HeadTile<32, 4, 8, 4, 16>());
  if (widest <= 256) return visit(HeadTile<32, 8, 8, 3, 8>());
  return visit(HeadTile<32, 16, 4, 3, 4>());
}

inline constexpr int kSplitWarps = 4;
inline constexpr int kSplitKeys = 32;          // of the shortest split
inline constexpr int64_t kLongestSplit = 256;  // of many, so that the last to end does not run alone for long
inline constexpr int64_t kEnoughBlocks = 264;  // two a multiprocessor: splits are shorter where they would be fewer

// How the keys are cut. Every block of a (batch row, key head, chunk of rows) gets a multiple of kSplitKeys columns. It
// follows from shapes and from the number of columns alone, so that graph and eager call, or caches of unlike capacity,
// sum in the same order.
struct AttentionSplit {
  int64_t rows = 0;        // of one key head: L * nq / nkv
  int64_t chunk_rows = 0;  // of a block
  int64_t row_chunks = 0;
  int64_t most_splits = 0;  // while they are shorter than the longest
  int64_t parts = 0;        // at any number of columns that the cache holds: the grid's and the workspace's
  __host__ __device__ int64_t columns_of_one(int64_t columns) const {
    const int64_t even = ceil_div(columns, kSplitKeys * most_splits) * kSplitKeys;
    return even < kLongestSplit ? even : kLongestSplit;
  }
};

template <typename T>
AttentionSplit split_attention(const AttentionParams<T>& p) {
  AttentionSplit split;
  split.rows = p.length * (p.heads / p.kv_heads);
  split.chunk_rows = with_head_tile(p.width, p.value_width, [](auto tile) { return int64_t{tile.kRows}; });
  split.row_chunks = ceil_div(split.rows, split.chunk_rows);
  split.most_splits = ceil_div(kEnoughBlocks, p.batch * p.kv_heads * split.row_chunks);
  split.parts =
      std::min(ceil_div(p.capacity, kSplitKeys), std::max(split.most_splits, ceil_div(p.capacity, kLongestSplit)));
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
