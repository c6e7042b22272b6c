#include "fast/kernels/expert_order.cuh"
#include "fast/kernels/experts.hpp"
#include "fast/kernels/experts_product.cuh"
#include "fast/kernels/experts_product_long.cuh"
#include "fast/kernels/experts_product_short.cuh"
#include "fast/kernels/experts_require.hpp"
#include "fast/kernels/launch.cuh"
#include "fast/kernels/storage.cuh"

namespace assay::fast {
namespace {

constexpr int kThreads = 256;

struct Workspace {
  ExpertOrder order;
  void* hidden = nullptr;     // [pairs, F], places as rows
  float* products = nullptr;  // [pairs, X]
  size_t bytes = 0;
};

// Short tiles where most experts have few rows, or where long ones would be too few to occupy the device.
template <typename T>
bool prefers_short(const ExpertsParams<T>& p) {
  constexpr int64_t kFewRows = 48, kFewTiles = 300;
  if (!is_packable<kPackWidth<T>, T>({p.x, p.first, p.down}, {p.x_stride, p.width, p.hidden_width})) return false;
  const int64_t pairs = p.tokens * p.chosen, experts = std::min(p.count, pairs);
  const int64_t columns = std::min(p.is_gated ? 2 * p.hidden_width : p.hidden_width, p.width);
  const int64_t tiles = (pairs / LongTile::kRows + experts) * ceil_div(columns, LongTile::kColumns);
  return pairs <= experts * kFewRows || tiles < kFewTiles;
}

template <typename T>
Workspace lay_out(const ExpertsParams<T>& p) {
  Workspace w;
  ExpertOrder& order = w.order;
  order.experts = p.experts;
  order.pairs = p.tokens * p.chosen;
  order.chunks = ceil_div(order.pairs, kOrderChunk);
  order.count = p.count;
  order.tile_rows = prefers_short(p) ? ShortTile<T>::kRows : LongTile::kRows;
  const auto most_tiles = [&](int64_t rows) { return order.pairs / rows + std::min(p.count, order.pairs); };
  order.most_tiles = most_tiles(order.tile_rows);
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
  // The most that any pointers need: bytes may be asked for before x is known.
  order.tile_expert = integers(most_tiles(ShortTile<T>::kRows));
  order.order = integers(order.pairs);
  order.place_of = integers(order.pairs);
  return w;
}

template <typename T, typename Out>
void multiply(const ExpertsProduct<T, Out>& p, const ExpertOrder& order, cudaStream_t stream) {
  const auto launch_tile = [&]<typename Tile>(auto kernel) {
    launch_shared("experts_grouped", kernel, order.most_tiles * TileColumns(p, Tile::kBand).tiles, Tile::kThreads,
                  Tile::kSharedBytes, stream, p, order);
  };
  if (order.tile_rows == LongTile::kRows) {
    launch_tile.template operator()<LongTile>(experts_long_kernel<T, Out>);
  } else {
    launch_tile.template operator()<ShortTile<T>>(experts_short_kernel<T, Out>);
  }
}

template <typename T, int kWidth>
__global__ void __launch_bounds__(kThreads) experts_sum_kernel(ExpertsParams<T> p, Workspace w) {
  const int64_t packs = p.width / kWidth;
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < p.tokens * packs; i += step) {
    const int64_t token = i / packs, at = (i - token * packs) * kWidth;
    float sum[kWidth] = {};
#pragma unroll 4
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

  ExpertsProduct<T, T> into;
  into.x = p.x;
  into.x_stride = p.x_stride;
  into.pairs_per_row = p.chosen;
  into.weight = p.first;
  into.weight_rows = p.is_gated ? 2 * p.hidden_width : p.hidden_width;
  into.in = p.width;
  into.out = p.hidden_width;
  into.up_at = p.hidden_width;
  into.result = static_cast<T*>(w.hidden);
  into.finish = p.is_gated ? Finish::kGated : Finish::kActivated;
  into.activation = p.activation;
  multiply(into, w.order, stream);

  ExpertsProduct<T, float> back;
  back.x = static_cast<const T*>(w.hidden);
  back.x_stride = p.hidden_width;
  back.weight = p.down;
  back.weight_rows = p.width;
  back.in = p.hidden_width;
  back.out = p.width;
  back.result = w.products;
  multiply(back, w.order, stream);

  constexpr int kWidth = 4;
  const bool is_packed = is_packable<kWidth, T>({p.y}, {p.width});
  launch(kName, is_packed ? experts_sum_kernel<T, kWidth> : experts_sum_kernel<T, 1>,
         ceil_div(p.tokens * p.width / (is_packed ? kWidth : 1), kThreads), kThreads, stream, p, w);
}

template size_t experts_grouped_workspace_bytes<float>(const ExpertsParams<float>&);
template void experts_grouped<float>(const ExpertsParams<float>&, cudaStream_t);

}  // namespace assay::fast
