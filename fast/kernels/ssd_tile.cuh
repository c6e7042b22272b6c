// Products of the kernels of ssd_chunked: a tile of 128 rows x 64 columns by 128 threads, 8 x 8 results each. Operands
// lie in shared memory with the summed index slowest, rows[k][128] and columns[k][64], and come in slices of 16
// summands.
//
// numerics  fused multiply-adds, k ascending
#pragma once

#include "fast/kernels/launch.cuh"
#include "fast/kernels/ssd.hpp"
#include "fast/kernels/storage.cuh"

namespace assay::fast {

inline constexpr int kSsdThreads = 128;
inline constexpr int kSsdRows = kSsdChunk;     // positions of a chunk, or states
inline constexpr int kSsdHalf = kSsdRows / 2;  // of the rows
inline constexpr int kSsdColumns = 64;
inline constexpr int kSsdDepth = 16;
static_assert(kSsdRows == 128);

// Row 64 h + place.row + i, column 32 g + place.column + k at [h][i][g][k].
using SsdResult = float[2][4][2][4];

struct SsdPlace {
  int row;
  int column;
};

// A warp owns 16 neighbouring rows of either half. Under a diagonal its work grows with the rows, so `turn` gives each
// warp of a multiprocessor every role. Lanes that differ in bit 0 read the same columns, in bit 1 the same rows.
__device__ inline SsdPlace ssd_place(int turn) {
  const int thread = static_cast<int>(threadIdx.x);
  const int role = (thread / kWarp + turn) % (kSsdThreads / kWarp);
  const int row = thread % 2 + thread / 8 % 2 * 2;
  const int column = thread / 2 % 4 + thread / 16 % 2 * 4;
  return {role * 16 + row * 4, column * 4};
}

// Halves [kFrom, kTo) of result += rows columns over a slice.
template <int kFrom, int kTo>
__device__ inline void ssd_multiply_halves(const float* rows, const float* columns, SsdPlace at, SsdResult& result) {
#pragma unroll 2
  for (int k = 0; k < kSsdDepth; ++k) {
    float left[2][4], right[2][4];
#pragma unroll
    for (int h = kFrom; h < kTo; ++h) load_pack<4>(rows + k * kSsdRows + h * kSsdHalf + at.row, left[h]);
#pragma unroll
    for (int g = 0; g < 2; ++g) load_pack<4>(columns + k * kSsdColumns + g * 32 + at.column, right[g]);
#pragma unroll
    for (int h = kFrom; h < kTo; ++h) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
#pragma unroll
        for (int g = 0; g < 2; ++g) {
#pragma unroll
          for (int q = 0; q < 4; ++q) result[h][i][g][q] = fmaf(left[h][i], right[g][q], result[h][i][g][q]);
        }
      }
    }
  }
}

// The halves that are asked for; both are uniform in a warp.
__device__ inline void ssd_multiply(const float* rows, const float* columns, bool low, bool high, SsdPlace at,
                                    SsdResult& result) {
  if (low && high) {
    ssd_multiply_halves<0, 2>(rows, columns, at, result);
  } else if (high) {
    ssd_multiply_halves<1, 2>(rows, columns, at, result);
  } else if (low) {
    ssd_multiply_halves<0, 1>(rows, columns, at, result);
  }
}

// Slices through two buffers: load(slice) to registers is in flight while the slice before it is multiplied, then
// store(slice) to buffer slice % 2. Begins and ends with both buffers free.
template <typename Load, typename Store, typename Multiply>
__device__ inline void walk_slices(int slices, Load load, Store store, Multiply multiply) {
  load(0);
  store(0);
  __syncthreads();
  for (int slice = 0; slice < slices; ++slice) {
    const bool has_next = slice + 1 < slices;
    if (has_next) load(slice + 1);
    multiply(slice);
    if (has_next) store(slice + 1);
    __syncthreads();
  }
}

// Four neighbours of which `left` exist, the others 0. Packed: all or none exist.
template <bool kPacked, typename T>
__device__ inline void load_four(const T* from, int left, float (&to)[4]) {
  if constexpr (kPacked) {
    to[0] = to[1] = to[2] = to[3] = 0.0f;
    if (left > 0) load_pack<4>(from, to);
  } else {
#pragma unroll
    for (int k = 0; k < 4; ++k) to[k] = k < left ? to_float(from[k]) : 0.0f;
  }
}

template <bool kPacked, typename T>
__device__ inline void store_four(T* to, int left, const float (&from)[4]) {
  if constexpr (kPacked) {
    if (left > 0) store_pack<4>(to, from);
  } else {
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      if (k < left) to[k] = from_float<T>(from[k]);
    }
  }
}

}  // namespace assay::fast
