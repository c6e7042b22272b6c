// The two products of experts_grouped: result[place] = finish(x[row of place] weight[e]^T) for the places of each
// expert e (expert_order.cuh). Two kernels share what is here: experts_product_long.cuh, whose time is that of the
// multiplications, and experts_product_short.cuh, for experts of so few rows that it is that of reading the weights.
//
// A block owns a tile: rows of one expert and columns in two bands, which are gate and up of the same hidden columns,
// or neighbours.
//
// numerics  each sum is one chain of fused multiply-adds, ascending, in both kernels: which of them ran does not show
#pragma once

#include <cstdint>

#include "fast/kernels/activation.hpp"
#include "fast/kernels/expert_order.cuh"
#include "fast/kernels/launch.cuh"

namespace assay::fast {

// What is stored of the sums of a band pair. Gated: act(first) * second; the others: both.
enum class Finish { kGated, kActivated, kPlain };

template <typename T, typename Out>
struct ExpertsProduct {
  const T* x = nullptr;
  int64_t x_stride = 0;
  int64_t pairs_per_row = 0;  // row of place: order[place] / pairs_per_row; 0: the place itself
  const T* weight = nullptr;  // [E, rows, in]
  int64_t weight_rows = 0;
  int64_t in = 0;
  int64_t out = 0;        // columns of result
  int64_t up_at = 0;      // gated: the row of the weight from which the second band is read
  Out* result = nullptr;  // [pairs, out]
  Finish finish = Finish::kPlain;
  ActivationKind activation = ActivationKind::kSilu;
};

// Columns of a tile whose bands have band columns each.
template <typename T, typename Out>
struct TileColumns {
  int64_t stored;       // columns of result that the tile stores
  int64_t second_band;  // row of the weight that the second band starts at, counted from the first
  int64_t tiles;        // across the result

  __host__ __device__ TileColumns(const ExpertsProduct<T, Out>& p, int64_t band)
      : stored(p.finish == Finish::kGated ? band : 2 * band),
        second_band(p.finish == Finish::kGated ? p.up_at : band),
        tiles(ceil_div(p.out, stored)) {}
};

// Rows of a tile: places first to first + count of the expert. Its tiles share an expert's rows evenly, in multiples of
// kGrain.
struct TileRows {
  int64_t expert, first;
  int count;
};

template <int kGrain>
__device__ inline TileRows rows_of_tile(const ExpertOrder& order, int64_t tile) {
  const int64_t expert = order.tile_expert[tile];
  const int rows_of_expert = order.offsets[expert + 1] - order.offsets[expert];
  const int grains = (order.tiles[expert + 1] - order.tiles[expert]) * kGrain;
  const int tile_rows = (rows_of_expert + grains - 1) / grains * kGrain;
  const int64_t first = order.offsets[expert] + (tile - order.tiles[expert]) * tile_rows;
  return {expert, first, static_cast<int>(min(int64_t{tile_rows}, order.offsets[expert + 1] - first))};
}

template <typename T, typename Out>
__device__ inline const T* row_of_place(const ExpertsProduct<T, Out>& p, const ExpertOrder& order, int64_t place) {
  return p.x + (p.pairs_per_row > 0 ? order.order[place] / p.pairs_per_row : place) * p.x_stride;
}

// second: of the same column in the other band, where gated.
template <typename T, typename Out>
__device__ inline float finished(const ExpertsProduct<T, Out>& p, float sum, float second) {
  if (p.finish != Finish::kPlain) {
    switch (p.activation) {
      case ActivationKind::kSilu:
        sum = activate<ActivationKind::kSilu>(sum);
        break;
      case ActivationKind::kGelu:
        sum = activate<ActivationKind::kGelu>(sum);
        break;
      case ActivationKind::kRelu2:
        sum = activate<ActivationKind::kRelu2>(sum);
        break;
    }
  }
  return p.finish == Finish::kGated ? sum * second : sum;
}

}  // namespace assay::fast
