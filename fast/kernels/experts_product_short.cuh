// experts_product (experts_product.cuh) by tiles of 16 rows and 128 columns, 4 x 4 sums a thread. Rows of x and of the
// weight are packs (storage.cuh): 16-byte accesses.
//
// A stage in shared memory holds 128 bytes of each of the tile's rows of x, then of the weight, as they lie outside,
// one access apart: neighbouring lanes read neighbouring rows, without bank conflicts.
#pragma once

#include <cuda_pipeline_primitives.h>

#include "fast/kernels/experts_product.cuh"
#include "fast/kernels/storage.cuh"

namespace assay::fast {

template <typename T>
struct ShortTile {
  static constexpr int kRows = 16, kColumns = 128, kBand = kColumns / 2;
  static constexpr int kOwn = 4, kOwnBand = kOwn / 2;    // rows and columns of a thread
  static constexpr int kLaneRows = 4, kLaneColumns = 8;  // of a warp's threads
  static constexpr int kThreads = kColumns / (kOwn * kLaneColumns) * kWarp;
  static constexpr int kBlocks = 3;     // that a multiprocessor holds
  static constexpr int kCopyLanes = 8;  // that copy a row's part of a stage
  static constexpr int kCopyRows = kThreads / kCopyLanes;
  static constexpr int kDepth = kCopyLanes * kPackWidth<T>;  // summands of a stage
  static constexpr int kStages = 3;
  static constexpr int kPitch = kDepth + kPackWidth<T>;
  static constexpr int kStage = (kRows + kColumns) * kPitch;
  static constexpr int kStep = 4;  // summands that a thread reads at a time
  static constexpr int kSharedBytes = kStages * kStage * static_cast<int>(sizeof(T));
  static_assert(kRows == kOwn * kLaneRows && kRows == kCopyRows);
};

// A pack to shared memory, zeros if it is not there; complete after the group's wait and a barrier.
template <typename T>
__device__ inline void copy_pack(T* to, const T* from, bool is_there) {
  if (is_there) {
    __pipeline_memcpy_async(to, from, 16);
  } else {
    *reinterpret_cast<uint4*>(to) = uint4{};
  }
}

template <typename T, typename Out>
__global__ void __launch_bounds__(ShortTile<T>::kThreads, ShortTile<T>::kBlocks)
    experts_short_kernel(ExpertsProduct<T, Out> p, ExpertOrder order) {
  using Tile = ShortTile<T>;
  constexpr int kBand = Tile::kBand, kDepth = Tile::kDepth, kStages = Tile::kStages, kPitch = Tile::kPitch;
  constexpr int kOwn = Tile::kOwn, kOwnBand = Tile::kOwnBand, kStep = Tile::kStep;
  constexpr int kLaneRows = Tile::kLaneRows, kLaneColumns = Tile::kLaneColumns;
  constexpr int kCopyRows = Tile::kCopyRows, kBandCopies = kBand / kCopyRows;
  T* staged = reinterpret_cast<T*>(dynamic_shared());

  const int thread = static_cast<int>(threadIdx.x);
  const int lane = thread % kWarp, warp = thread / kWarp;
  const int copy_at = thread % Tile::kCopyLanes * kPackWidth<T>, copy_row = thread / Tile::kCopyLanes;
  // Of lanes i, i ^ 1 and i ^ 2 two read the same row and two the same column, which halves the passes of a read.
  const int own_row = ((lane >> 1) & 1) | ((lane >> 3) & 2);
  const int own_column = warp * kOwnBand * kLaneColumns + ((lane & 1) | ((lane >> 1) & 6));

  const bool is_gated = p.finish == Finish::kGated;
  const TileColumns across(p, kBand);
  const int64_t items = order.tiles[order.count] * across.tiles;
  for (int64_t item = blockIdx.x; item < items; item += gridDim.x) {
    const int64_t tile = item / across.tiles;
    const int64_t first_column = (item - tile * across.tiles) * across.stored;
    const TileRows tile_rows = rows_of_tile<Tile::kRows>(order, tile);

    // Rows past the last repeat the first, columns past the last are not copied: their sums are not stored.
    const T* row_at = row_of_place(p, order, tile_rows.first + (copy_row < tile_rows.count ? copy_row : 0)) + copy_at;
    const T* column_at = p.weight + (tile_rows.expert * p.weight_rows + first_column + copy_row) * p.in + copy_at;
    const bool is_whole = first_column + across.stored <= p.out;
    const auto copy = [&](int stage, int64_t k) {
      T* to = staged + stage * Tile::kStage + copy_row * kPitch + copy_at;
      T* columns_to = to + Tile::kRows * kPitch;
      const auto from = [&](int i) {
        return column_at + (i % kBandCopies * kCopyRows + i / kBandCopies * across.second_band) * p.in + k;
      };
      if (is_whole && k + kDepth <= p.in) {
        copy_pack(to, row_at + k, true);
#pragma unroll
        for (int i = 0; i < 2 * kBandCopies; ++i) copy_pack(columns_to + i * kCopyRows * kPitch, from(i), true);
        return;
      }
      const bool is_there = k + copy_at < p.in;
      copy_pack(to, row_at + k, is_there);
#pragma unroll 1
      for (int i = 0; i < 2 * kBandCopies; ++i) {
        const int64_t column = first_column + copy_row + i % kBandCopies * kCopyRows;
        if (column + (is_gated ? 0 : i / kBandCopies * kBand) >= p.out) continue;
        copy_pack(columns_to + i * kCopyRows * kPitch, from(i), is_there);
      }
    };

    float result[kOwn][kOwn] = {};
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
      const T* rows = staged + stage * Tile::kStage + own_row * kPitch;
      const T* columns = staged + stage * Tile::kStage + (Tile::kRows + own_column) * kPitch;
#pragma unroll 4
      for (int at = 0; at < kDepth; at += kStep) {
        float left[kOwn][kStep];
#pragma unroll
        for (int i = 0; i < kOwn; ++i) load_pack<kStep>(rows + i * kLaneRows * kPitch + at, left[i]);
#pragma unroll
        for (int j = 0; j < kOwn; ++j) {
          float right[kStep];
          load_pack<kStep>(columns + (j / kOwnBand * kBand + j % kOwnBand * kLaneColumns) * kPitch + at, right);
#pragma unroll
          for (int q = 0; q < kStep; ++q) {
#pragma unroll
            for (int i = 0; i < kOwn; ++i) result[i][j] = fmaf(left[i][q], right[q], result[i][j]);
          }
        }
      }
      stage = stage + 1 == kStages ? 0 : stage + 1;
      stage_ahead = stage_ahead + 1 == kStages ? 0 : stage_ahead + 1;
    }
    __syncthreads();  // before the next item's copies

#pragma unroll
    for (int i = 0; i < kOwn; ++i) {
      const int row = own_row + i * kLaneRows;
      if (row >= tile_rows.count) continue;
      Out* to = p.result + (tile_rows.first + row) * p.out;
#pragma unroll
      for (int j = 0; j < kOwn; ++j) {
        if (is_gated && j >= kOwnBand) continue;
        const int64_t column = first_column + own_column + j / kOwnBand * kBand + j % kOwnBand * kLaneColumns;
        if (column < p.out) to[column] = from_float<Out>(finished(p, result[i][j], result[i][j % kOwnBand + kOwnBand]));
      }
    }
  }
}

}  // namespace assay::fast
