// experts_product (experts_product.cuh) by tiles of 64 rows and 128 columns, 8 x 8 sums a thread, for any width and
// alignment.
//
// A stage in shared memory holds for each summand the tile's rows of x, then of the weight, as float, so that a
// thread's operands of one summand are neighbours: their registers then lie in other banks than most of its sums, which
// decides how often a multiply-add waits for an operand.
#pragma once

#include <cuda_pipeline_primitives.h>

#include "fast/kernels/experts_product.cuh"
#include "fast/kernels/storage.cuh"

namespace assay::fast {

struct LongTile {
  static constexpr int kRows = 64, kColumns = 128, kBand = kColumns / 2;
  static constexpr int kOwn = 8;                         // rows of a thread, and columns
  static constexpr int kPack = 4;                        // of them that are neighbours
  static constexpr int kLaneRows = 4, kLaneColumns = 8;  // of a warp's threads
  static constexpr int kWarpRows = kOwn * kLaneRows;
  static constexpr int kWarpsAcross = kColumns / (kOwn * kLaneColumns);
  static constexpr int kThreads = kRows / kWarpRows * kWarpsAcross * kWarp;
  static constexpr int kBlocks = 3;  // that a multiprocessor holds
  static constexpr int kDepth = 32;  // summands of a stage
  static constexpr int kStages = 3;
  static constexpr int kPitch = kRows + kColumns + 4;  // the four more keep a copy's threads on different banks
  static constexpr int kStage = kDepth * kPitch;
  static constexpr int kCopyDepth = 8;  // summands that neighbouring threads copy: a whole 32-byte sector
  static constexpr int kCopyRows = kThreads / kCopyDepth;
  static constexpr int kSharedBytes = kStages * kStage * static_cast<int>(sizeof(float));
};

// To shared memory; complete after the group's wait and a barrier.
template <typename T>
__device__ inline void copy_element(float* to, const T* from) {
  if constexpr (sizeof(T) == sizeof(float)) {
    __pipeline_memcpy_async(to, from, sizeof(float));
  } else {
    *to = to_float(*from);
  }
}

__device__ inline void read_packs(const float* from, int step, float (&to)[LongTile::kOwn]) {
#pragma unroll
  for (int i = 0; i < LongTile::kOwn; i += LongTile::kPack) {
    const float4 pack = *reinterpret_cast<const float4*>(from + i / LongTile::kPack * step);
    to[i] = pack.x;
    to[i + 1] = pack.y;
    to[i + 2] = pack.z;
    to[i + 3] = pack.w;
  }
}

template <typename T, typename Out>
__global__ void __launch_bounds__(LongTile::kThreads, LongTile::kBlocks)
    experts_long_kernel(ExpertsProduct<T, Out> p, ExpertOrder order) {
  using Tile = LongTile;
  constexpr int kBand = Tile::kBand, kDepth = Tile::kDepth, kStages = Tile::kStages, kPitch = Tile::kPitch;
  constexpr int kOwn = Tile::kOwn, kPack = Tile::kPack;
  constexpr int kRowStep = Tile::kLaneRows * kPack;  // from a thread's pack of rows to its next
  constexpr int kCopyDepth = Tile::kCopyDepth, kCopyRows = Tile::kCopyRows;
  constexpr int kRowCopies = Tile::kRows / kCopyRows, kBandCopies = kBand / kCopyRows;
  float* staged = dynamic_shared();

  const int thread = static_cast<int>(threadIdx.x);
  const int lane = thread % kWarp, warp = thread / kWarp;
  const int copy_at = thread % kCopyDepth, copy_row = thread / kCopyDepth;
  // Of lanes i, i ^ 1 and i ^ 2 two read the same row and two the same column, which halves the passes of a read.
  const int lane_row = ((lane >> 1) & 1) | ((lane >> 3) & 2), lane_column = (lane & 1) | ((lane >> 1) & 6);
  const int warp_row = warp / Tile::kWarpsAcross * Tile::kWarpRows;
  const int own_row = warp_row + lane_row * kPack;
  const int own_column = (warp % Tile::kWarpsAcross * Tile::kLaneColumns + lane_column) * kPack;

  const bool is_gated = p.finish == Finish::kGated;
  const TileColumns across(p, kBand);
  const int64_t items = order.tiles[order.count] * across.tiles;
  for (int64_t item = blockIdx.x; item < items; item += gridDim.x) {
    const int64_t tile = item / across.tiles;
    const int64_t first_column = (item - tile * across.tiles) * across.stored;
    const TileRows tile_rows = rows_of_tile<Tile::kWarpRows>(order, tile);

    // Rows past the last repeat the first, columns past the last are not copied: their sums are not stored.
    const T* row_at[kRowCopies];
#pragma unroll
    for (int i = 0; i < kRowCopies; ++i) {
      const int row = i * kCopyRows + copy_row;
      row_at[i] = row_of_place(p, order, tile_rows.first + (row < tile_rows.count ? row : 0)) + copy_at;
    }
    const T* column_at = p.weight + (tile_rows.expert * p.weight_rows + first_column + copy_row) * p.in + copy_at;
    const bool is_whole = first_column + across.stored <= p.out;
    const auto copy = [&](int stage, int64_t k) {
      float* to = staged + stage * Tile::kStage + copy_at * kPitch + copy_row;
      if (is_whole && k + kDepth <= p.in) {
#pragma unroll
        for (int i = 0; i < kRowCopies; ++i) {
#pragma unroll
          for (int d = 0; d < kDepth; d += kCopyDepth) copy_element(to + d * kPitch + i * kCopyRows, row_at[i] + k + d);
        }
#pragma unroll
        for (int i = 0; i < 2 * kBandCopies; ++i) {
          const T* from = column_at + (i % kBandCopies * kCopyRows + i / kBandCopies * across.second_band) * p.in + k;
#pragma unroll
          for (int d = 0; d < kDepth; d += kCopyDepth) {
            copy_element(to + d * kPitch + Tile::kRows + i * kCopyRows, from + d);
          }
        }
        return;
      }
#pragma unroll 1
      for (int d = 0; d < kDepth; d += kCopyDepth) {
        const bool is_there = k + d + copy_at < p.in;
#pragma unroll
        for (int i = 0; i < kRowCopies; ++i) {
          float* row_to = to + d * kPitch + i * kCopyRows;
          if (is_there) {
            copy_element(row_to, row_at[i] + k + d);
          } else {
            *row_to = 0;
          }
        }
#pragma unroll 1
        for (int i = 0; i < 2 * kBandCopies; ++i) {
          const int64_t in_band = i % kBandCopies * kCopyRows, band = i / kBandCopies;
          float* column_to = to + d * kPitch + Tile::kRows + i * kCopyRows;
          if (first_column + copy_row + in_band + (is_gated ? 0 : band * kBand) >= p.out) continue;
          if (is_there) {
            copy_element(column_to, column_at + (in_band + band * across.second_band) * p.in + k + d);
          } else {
            *column_to = 0;
          }
        }
      }
    };

    float result[kOwn][kOwn] = {};
    const bool has_rows = warp_row < tile_rows.count;
#pragma unroll 1
    for (int stage = 0; stage < kStages - 1; ++stage) {
      if (stage * kDepth < p.in) copy(stage, stage * kDepth);
      __pipeline_commit();
    }
    int stage = 0, stage_ahead = kStages - 1;
    for (int64_t k = 0; k < p.in; k += kDepth) {
      __pipeline_wait_prior(kStages - 2);
      __syncthreads();  // the stage is there, and all have read the one before, which is filled next
      const int64_t k_ahead = k + (kStages - 1) * kDepth;
      if (k_ahead < p.in) copy(stage_ahead, k_ahead);
      __pipeline_commit();
      if (has_rows) {
        const float* rows = staged + stage * Tile::kStage + own_row;
        const float* columns = staged + stage * Tile::kStage + Tile::kRows + own_column;
#pragma unroll 8
        for (int d = 0; d < kDepth; ++d) {
          float left[kOwn], right[kOwn];
          read_packs(rows + d * kPitch, kRowStep, left);
          read_packs(columns + d * kPitch, kBand, right);
          // There and back along the rows: each multiply-add shares an operand with the one before it.
#pragma unroll
          for (int j = 0; j < kOwn; ++j) {
#pragma unroll
            for (int r = 0; r < kOwn; ++r) {
              const int i = j % 2 == 0 ? r : kOwn - 1 - r;
              result[i][j] = fmaf(left[i], right[j], result[i][j]);
            }
          }
        }
      }
      stage = stage + 1 == kStages ? 0 : stage + 1;
      stage_ahead = stage_ahead + 1 == kStages ? 0 : stage_ahead + 1;
    }
    __syncthreads();  // before the next item's copies

    const bool is_packed = p.out % kPack == 0;
#pragma unroll
    for (int i = 0; i < kOwn; ++i) {
      const int row = own_row + i / kPack * kRowStep + i % kPack;
      if (row >= tile_rows.count) continue;
      Out* to = p.result + (tile_rows.first + row) * p.out;
#pragma unroll
      for (int band = 0; band < 2; ++band) {
        if (is_gated && band == 1) continue;
        const int64_t column = first_column + own_column + band * kBand;
        float value[kPack];
#pragma unroll
        for (int q = 0; q < kPack; ++q) value[q] = finished(p, result[i][band * kPack + q], result[i][kPack + q]);
        if (is_packed && column < p.out) {
          store_pack<kPack>(to + column, value);
        } else {
#pragma unroll
          for (int q = 0; q < kPack; ++q) {
            if (column + q < p.out) to[column + q] = from_float<Out>(value[q]);
          }
        }
      }
    }
  }
}

}  // namespace assay::fast
