// attention_prefill's tile: how a block is laid out, and the copies of slices of queries, keys and values to shared
// memory, where the summed index is the slowest.
#pragma once

#include <cstdint>
#include <type_traits>

#include "fast/kernels/async_copy.cuh"
#include "fast/kernels/launch.cuh"
#include "fast/kernels/storage.cuh"

namespace assay::fast {

// A row is a pair (query, head of the group), heads fastest; a column is a key, or a lane of the values.
//   kAcross   threads side by side along the columns; the others of a warp lie along the rows: a row is one warp's
//   kPasses   over the weights, kColumns lanes of the values in each
//   kStreams  whether queries are staged slice by slice for each tile of keys; otherwise shared memory holds them
//   kBlocks   on one multiprocessor
template <int kAcrossOf, int kPassesOf, bool kStreamsOf, int kBlocksOf>
struct AttentionTile {
  static constexpr int kAcross = kAcrossOf, kPasses = kPassesOf, kBlocks = kBlocksOf;
  static constexpr bool kStreams = kStreamsOf;
  static constexpr int kOwn = 8;  // rows of a thread; columns of it too, as two bands of 4
  static constexpr int kRows = 128;
  static constexpr int kColumns = kAcross * kOwn;
  static constexpr int kBand = kColumns / 2;
  static constexpr int kThreads = kRows / kOwn * kAcross;
  static constexpr int kWarps = kThreads / kWarp;
  static constexpr int kSlice = 16;  // lanes of queries and keys, or keys of the values, that are staged at a time
  static constexpr int kRowPitch = kRows + 4;  // 8 lanes of 4 neighbours lie in 32 banks
  static constexpr int kPitch = kColumns + 4;
  static constexpr int kStaged = kSlice * (kPitch + (kStreams ? kRowPitch : 0));
  static_assert(kAcross % kWarps == 0);

  static constexpr int floats(int64_t width) {
    const int resident = kStreams ? 0 : static_cast<int>(ceil_div(width, kSlice)) * kSlice;
    return (resident + kColumns) * kRowPitch + 2 * kStaged;
  }
};

// Zeros where nothing is there, without reading.
template <int kWidth, bool kIsInside, typename T>
__device__ inline void copy_to_shared(float* to, const T* from, bool is_there) {
  if constexpr (std::is_same_v<T, float>) {
    const auto address = static_cast<unsigned>(__cvta_generic_to_shared(to));
    const int bytes = is_there ? 4 * kWidth : 0;
    if constexpr (kWidth == 4 && kIsInside) {
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(from) : "memory");
    } else if constexpr (kWidth == 4) {
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from), "r"(bytes) : "memory");
    } else if constexpr (kIsInside) {
      asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(address), "l"(from) : "memory");
    } else {
      asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(address), "l"(from), "r"(bytes) : "memory");
    }
  } else {
    float elements[kWidth] = {};
    if (is_there) load_pack(from, elements);
#pragma unroll
    for (int i = 0; i < kWidth; ++i) to[i] = elements[i];
  }
}

// The first element of a slice that a thread copies: its row of the source, its lane there, its place in the slice.
struct Share {
  int row = 0;
  int lane = 0;
  int at = 0;
};

// Keys lie lane by lane, kAcross keys apart beside each other: those of a thread are one vector.
template <typename Tile>
__device__ inline Share key_share(int thread) {
  const int lane = thread % 8, quarter = thread % kWarp / 8, across = thread / kWarp;
  return {across + Tile::kAcross * quarter, lane, lane * Tile::kPitch + 4 * across + quarter};
}

// slice, from: where the share's first element goes and lies. rows, lanes: those left, from the slice's first on.
template <typename Tile, bool kIsInside, typename T>
__device__ inline void stage_keys(float* slice, const T* from, int width, Share share, int rows, int lanes) {
  constexpr int kSteps = Tile::kAcross / Tile::kWarps;
#pragma unroll
  for (int e = 0; e < Tile::kSlice / 4 * kSteps; ++e) {
    const int across = e % kSteps * Tile::kWarps, band = e / kSteps % 2 * Tile::kBand, half = e / kSteps / 2 * 8;
    const bool is_there = kIsInside || (share.row + across + band < rows && share.lane + half < lanes);
    copy_to_shared<1, kIsInside>(slice + half * Tile::kPitch + 4 * across + band,
                                 from + static_cast<unsigned>(width * (across + band)) + half, is_there);
  }
}

template <typename Tile, int kWidth>
__device__ inline Share value_share(int thread) {
  constexpr int kPacks = Tile::kColumns / kWidth;
  const int row = thread / kPacks, lane = thread % kPacks * kWidth;
  return {row, lane, row * Tile::kPitch + lane};
}

template <typename Tile, int kWidth, bool kIsInside, typename T>
__device__ inline void stage_values(float* slice, const T* from, int width, Share share, int rows, int lanes) {
  constexpr int kStep = Tile::kThreads * kWidth / Tile::kColumns;
#pragma unroll
  for (int e = 0; e < Tile::kSlice / kStep; ++e) {
    const bool is_there = kIsInside || (share.row + e * kStep < rows && share.lane < lanes);
    copy_to_shared<kWidth, kIsInside>(slice + e * kStep * Tile::kPitch,
                                      from + static_cast<unsigned>(width * (e * kStep)), is_there);
  }
}

// Row r lies at from + offset[r].
template <typename Tile, typename T>
__device__ inline void stage_queries(float* slice, const T* from, const int64_t* offset, int thread, int rows,
                                     int lanes) {
  const int lane = thread % 8;
#pragma unroll
  for (int e = 0; e < Tile::kRows; e += Tile::kThreads / 8) {
    const int r = thread / 8 + e;
#pragma unroll
    for (int half = 0; half < Tile::kSlice; half += 8) {
      copy_to_shared<1, false>(slice + (half + lane) * Tile::kRowPitch + r, from + offset[r] + half + lane,
                               r < rows && half + lane < lanes);
    }
  }
}

}  // namespace assay::fast
