// Products of tiles in float32 by a block of kTileSide x kTileSide threads. Operands lie in shared memory with the
// summed index slowest: rows[k][r] and columns[k][c].
//
// Thread (r, c) = (threadIdx.x / kTileSide, threadIdx.x % kTileSide) owns rows r kRows + [0, kRows) and, in each of
// kPacks bands of 64 columns, columns 4 c + [0, 4): result[i][4 j + q] is row r kRows + i, column 64 j + 4 c + q.
//
// numerics  fused multiply-adds, k ascending. The place where tensor cores go
#pragma once

#include "fast/kernels/launch.cuh"

namespace assay::fast {

inline constexpr int kTileSide = 16;
inline constexpr int kTileThreads = kTileSide * kTileSide;
inline constexpr int kTileBand = 4 * kTileSide;  // columns of one band

__device__ inline int tile_row() { return static_cast<int>(threadIdx.x) / kTileSide; }
__device__ inline int tile_column() { return static_cast<int>(threadIdx.x) % kTileSide; }

// result += rows columns over kDepth summands. kRows and both pitches are multiples of 4, both pointers 16-byte
// aligned.
template <int kDepth, int kRows, int kPacks>
__device__ inline void multiply_tile(const float* rows, int row_pitch, const float* columns, int column_pitch,
                                     float (&result)[kRows][4 * kPacks]) {
  const float* row = rows + tile_row() * kRows;
  const float* column = columns + tile_column() * 4;
#pragma unroll 4
  for (int k = 0; k < kDepth; ++k) {
    float left[kRows], right[4 * kPacks];
#pragma unroll
    for (int i = 0; i < kRows; i += 4) {
      const float4 four = *reinterpret_cast<const float4*>(row + k * row_pitch + i);
      left[i] = four.x;
      left[i + 1] = four.y;
      left[i + 2] = four.z;
      left[i + 3] = four.w;
    }
#pragma unroll
    for (int j = 0; j < kPacks; ++j) {
      const float4 four = *reinterpret_cast<const float4*>(column + k * column_pitch + j * kTileBand);
      right[4 * j] = four.x;
      right[4 * j + 1] = four.y;
      right[4 * j + 2] = four.z;
      right[4 * j + 3] = four.w;
    }
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
#pragma unroll
      for (int j = 0; j < 4 * kPacks; ++j) result[i][j] = fmaf(left[i], right[j], result[i][j]);
    }
  }
}

}  // namespace assay::fast
