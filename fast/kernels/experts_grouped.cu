#include "fast/kernels/activation.hpp"
#include "fast/kernels/expert_order.cuh"
#include "fast/kernels/experts.hpp"
#include "fast/kernels/experts_require.hpp"
#include "fast/kernels/launch.cuh"
#include "fast/kernels/storage.cuh"
#include "fast/kernels/tile.cuh"

namespace assay::fast {
namespace {

constexpr int kDepth = 32;  // summands staged at a time
constexpr int kBands = 2;   // gate and up, or 128 neighbouring columns
constexpr int kColumns = kBands * kTileBand;
constexpr int kColumnPitch = kColumns + 4;
constexpr int kLoadLanes = 8;  // summands that neighbouring threads read: a whole 32-byte sector
constexpr int kLoadRows = kTileThreads / kLoadLanes;
constexpr int kLoadDepths = kDepth / kLoadLanes;
constexpr int kThreads = 256;

struct Workspace {
  ExpertOrder order;
  void* hidden = nullptr;     // [pairs, F], places as rows
  float* products = nullptr;  // [pairs, X]
  size_t bytes = 0;
};

template <typename T>
Workspace lay_out(const ExpertsParams<T>& p) {
  Workspace w;
  ExpertOrder& order = w.order;
  order.experts = p.experts;
  order.pairs = p.tokens * p.chosen;
  order.chunks = ceil_div(order.pairs, kOrderChunk);
  order.count = p.count;
  // Long tiles only where the experts have rows to fill them.
  order.tile_rows = order.pairs / p.count >= 96 ? 128 : 64;
  order.most_tiles = order.pairs / order.tile_rows + std::min(p.count, order.pairs);
  const auto take = [&w, base = static_cast<char*>(p.workspace)](int64_t bytes) {
    void* part = base == nullptr ? nullptr : base + w.bytes;
    w.bytes += static_cast<size_t>(ceil_div(bytes, 16) * 16);
    return part;
  };
  const auto integers = [&take](int64_t count) { return static_cast<int32_t*>(take(count * 4)); };
  w.products = static_cast<float*>(take(order.pairs * p.width * 4));
  w.hidden = take(order.pairs * p.hidden_width * static_cast<int64_t>(sizeof(T)));
  order.counts = integers(order.chunks * order.count);
  order.offsets = integers(order.count + 1);
  order.tiles = integers(order.count + 1);
  order.tile_expert = integers(order.most_tiles);
  order.order = integers(order.pairs);
  order.place_of = integers(order.pairs);
  return w;
}

// One of the two products: result[place] = x[row of place] weight[e]^T for the places of each expert e.
template <typename T, typename Out>
struct Product {
  const T* x = nullptr;
  int64_t x_stride = 0;
  int64_t pairs_per_row = 0;  // row of place: order[place] / pairs_per_row; 0: the place itself
  const T* weight = nullptr;  // [E, rows, in]
  int64_t weight_rows = 0;
  int64_t in = 0;
  int64_t out = 0;          // columns of result
  int64_t second_band = 0;  // row of the weight that the second band starts at, counted from the first
  Out* result = nullptr;    // [pairs, out]
};

// What is stored of the sums of a band pair. Gated: one column of act(first) * second; plain: both.
enum class Finish { kGated, kActivated, kPlain };

template <typename T, typename Out, Finish kFinish, ActivationKind kKind, int kRows>
__global__ void __launch_bounds__(kTileThreads) experts_product_kernel(Product<T, Out> p, ExpertOrder order) {
  constexpr int kTileRows = kRows * kTileSide;
  constexpr int kRowPitch = kTileRows + 4;
  constexpr int kRowLoads = kTileRows / kLoadRows, kColumnLoads = kColumns / kLoadRows;
  alignas(16) __shared__ float rows[kDepth][kRowPitch];
  alignas(16) __shared__ float columns[kDepth][kColumnPitch];
  constexpr int kResultColumns = kFinish == Finish::kGated ? kTileBand : kColumns;
  const int64_t column_tiles = ceil_div(p.out, kResultColumns);
  const int64_t tiles = order.tiles[order.count];
  const int load_lane = static_cast<int>(threadIdx.x) % kLoadLanes;
  const int load_row = static_cast<int>(threadIdx.x) / kLoadLanes;

  for (int64_t item = blockIdx.x; item < tiles * column_tiles; item += gridDim.x) {
    const int64_t tile = item / column_tiles;
    const int64_t first_column = (item - tile * column_tiles) * kResultColumns;
    const int64_t expert = order.tile_expert[tile];
    const int64_t first = order.offsets[expert] + (tile - order.tiles[expert]) * kTileRows;
    const int count = static_cast<int>(min(int64_t{kTileRows}, order.offsets[expert + 1] - first));

    // Rows and columns outside read from the first one: their products are not stored.
    const T* row_at[kRowLoads];
    const T* column_at[kColumnLoads];
#pragma unroll
    for (int i = 0; i < kRowLoads; ++i) {
      const int row = i * kLoadRows + load_row;
      int64_t place = first + (row < count ? row : 0);
      if (p.pairs_per_row > 0) place = order.order[place] / p.pairs_per_row;
      row_at[i] = p.x + place * p.x_stride + load_lane;
    }
#pragma unroll
    for (int i = 0; i < kColumnLoads; ++i) {
      const int column = i * kLoadRows + load_row;
      const int64_t in_band = first_column + column % kTileBand;
      int64_t row = in_band + column / kTileBand * p.second_band;
      const bool is_there = kFinish == Finish::kGated ? in_band < p.out : row < p.out;
      if (!is_there) row = 0;
      column_at[i] = p.weight + (expert * p.weight_rows + row) * p.in + load_lane;
    }

    float row_ahead[kRowLoads * kLoadDepths], column_ahead[kColumnLoads * kLoadDepths];
    const auto read_ahead = [&](int64_t k) {
#pragma unroll
      for (int depth = 0; depth < kLoadDepths; ++depth) {
        const bool is_there = k + depth * kLoadLanes + load_lane < p.in;
#pragma unroll
        for (int i = 0; i < kRowLoads; ++i) {
          row_ahead[i * kLoadDepths + depth] = is_there ? to_float(row_at[i][k + depth * kLoadLanes]) : 0.0f;
        }
#pragma unroll
        for (int i = 0; i < kColumnLoads; ++i) {
          column_ahead[i * kLoadDepths + depth] = is_there ? to_float(column_at[i][k + depth * kLoadLanes]) : 0.0f;
        }
      }
    };

    float result[kRows][4 * kBands] = {};
    read_ahead(0);
    for (int64_t k = 0; k < p.in; k += kDepth) {
      __syncthreads();
#pragma unroll
      for (int depth = 0; depth < kLoadDepths; ++depth) {
#pragma unroll
        for (int i = 0; i < kRowLoads; ++i) {
          rows[depth * kLoadLanes + load_lane][i * kLoadRows + load_row] = row_ahead[i * kLoadDepths + depth];
        }
#pragma unroll
        for (int i = 0; i < kColumnLoads; ++i) {
          columns[depth * kLoadLanes + load_lane][i * kLoadRows + load_row] = column_ahead[i * kLoadDepths + depth];
        }
      }
      __syncthreads();
      if (k + kDepth < p.in) read_ahead(k + kDepth);
      multiply_tile<kDepth, kRows, kBands>(&rows[0][0], kRowPitch, &columns[0][0], kColumnPitch, result);
    }

#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const int row = tile_row() * kRows + i;
      if (row >= count) continue;
      Out* to = p.result + (first + row) * p.out;
      if constexpr (kFinish == Finish::kGated) {
#pragma unroll
        for (int q = 0; q < 4; ++q) {
          const int64_t column = first_column + tile_column() * 4 + q;
          if (column < p.out) to[column] = from_float<Out>(activate<kKind>(result[i][q]) * result[i][4 + q]);
        }
      } else {
#pragma unroll
        for (int q = 0; q < 4 * kBands; ++q) {
          const int64_t column = first_column + q / 4 * kTileBand + tile_column() * 4 + q % 4;
          const float value = kFinish == Finish::kActivated ? activate<kKind>(result[i][q]) : result[i][q];
          if (column < p.out) to[column] = from_float<Out>(value);
        }
      }
    }
  }
}

template <typename T, typename Out, Finish kFinish, ActivationKind kKind>
void multiply(const Product<T, Out>& p, const ExpertOrder& order, cudaStream_t stream) {
  const int64_t items = order.most_tiles * ceil_div(p.out, kFinish == Finish::kGated ? kTileBand : kColumns);
  const auto kernel = order.tile_rows == 128 ? experts_product_kernel<T, Out, kFinish, kKind, 8>
                                             : experts_product_kernel<T, Out, kFinish, kKind, 4>;
  launch("experts_grouped", kernel, items, kTileThreads, stream, p, order);
}

template <typename T, int kWidth>
__global__ void __launch_bounds__(kThreads) experts_sum_kernel(ExpertsParams<T> p, Workspace w) {
  const int64_t packs = p.width / kWidth;
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < p.tokens * packs; i += step) {
    const int64_t token = i / packs, at = (i - token * packs) * kWidth;
    float sum[kWidth] = {};
    for (int64_t pair = token * p.chosen; pair < (token + 1) * p.chosen; ++pair) {
      float product[kWidth];
      load_pack<kWidth>(w.products + w.order.place_of[pair] * p.width + at, product);
#pragma unroll
      for (int q = 0; q < kWidth; ++q) sum[q] = fmaf(p.weights[pair], product[q], sum[q]);
    }
    store_pack<kWidth>(p.y + token * p.width + at, sum);
  }
}

}  // namespace

template <typename T>
size_t experts_grouped_workspace_bytes(const ExpertsParams<T>& p) {
  require_experts_sizes("experts_grouped", p);
  return lay_out(p).bytes;
}

template <typename T>
void experts_grouped(const ExpertsParams<T>& p, cudaStream_t stream) {
  constexpr const char* kName = "experts_grouped";
  require_experts_sizes(kName, p);
  require_experts_operands(kName, p);
  const Workspace w = lay_out(p);
  order_by_expert(w.order, stream);

  Product<T, T> into;
  into.x = p.x;
  into.x_stride = p.x_stride;
  into.pairs_per_row = p.chosen;
  into.weight = p.first;
  into.weight_rows = p.is_gated ? 2 * p.hidden_width : p.hidden_width;
  into.in = p.width;
  into.out = p.hidden_width;
  into.second_band = p.is_gated ? p.hidden_width : kTileBand;
  into.result = static_cast<T*>(w.hidden);
  with_activation(p.activation, [&]<ActivationKind kKind>() {
    if (p.is_gated) {
      multiply<T, T, Finish::kGated, kKind>(into, w.order, stream);
    } else {
      multiply<T, T, Finish::kActivated, kKind>(into, w.order, stream);
    }
  });

  Product<T, float> back;
  back.x = static_cast<const T*>(w.hidden);
  back.x_stride = p.hidden_width;
  back.weight = p.down;
  back.weight_rows = p.width;
  back.in = p.hidden_width;
  back.out = p.width;
  back.second_band = kTileBand;
  back.result = w.products;
  multiply<T, float, Finish::kPlain, ActivationKind::kSilu>(back, w.order, stream);

  constexpr int kWidth = 4;
  const bool is_packed = is_packable<kWidth, T>({p.y}, {p.width});
  launch(kName, is_packed ? experts_sum_kernel<T, kWidth> : experts_sum_kernel<T, 1>,
         ceil_div(p.tokens * p.width / (is_packed ? kWidth : 1), kThreads), kThreads, stream, p, w);
}

template size_t experts_grouped_workspace_bytes<float>(const ExpertsParams<float>&);
template void experts_grouped<float>(const ExpertsParams<float>&, cudaStream_t);

}  // namespace assay::fast
