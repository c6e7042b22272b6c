#include "fast/kernels/gemv.cuh"
#include "fast/kernels/launch.cuh"
#include "fast/kernels/linear_gemv.hpp"
#include "fast/kernels/require.hpp"
#include "fast/kernels/storage.cuh"

namespace assay::fast {
namespace {

// kOut neighbouring rows of the weight are a tile, 32 packs of each a run. `split` warps share a tile: warp w of them
// takes runs w, w + split, ...
constexpr int kMostSplit = 8;
constexpr int kBatch = 4;  // runs that a warp should have at least

// A block is `places` tiles side by side.
struct Split {
  int split;   // warps to a tile
  int places;  // tiles to a block
  int warps() const { return split * places; }
};

// By the depth alone, so that a row's sum is the same whatever is computed with it: all warps get as many whole
// batches.
Split split_of(int64_t packs) {
  const int64_t runs = ceil_div(packs, kWarp);
  const int64_t batches = ceil_div(runs, kBatch * kMostSplit);
  const auto split = static_cast<int>(ceil_div(runs, kBatch * batches));
  return {split, split < 4 ? 4 / split : 1};
}

// sum[t, o] += w[o] x[t] over a pack that begins at `at`. Rows of x that are not there repeat the last one.
template <int kWidth, int kRows, int kOut, typename T>
__device__ inline void add_products(const LinearGemvParams<T>& p, int64_t at, const float (&w)[kOut][kWidth],
                                    float (&sum)[kRows * kOut]) {
  const T* row = p.x + at;
#pragma unroll
  for (int t = 0; t < kRows; ++t) {
    float x[kWidth];
    load_pack<kWidth>(row, x);
    if (t + 1 < p.rows) row += p.x_stride;
#pragma unroll
    for (int o = 0; o < kOut; ++o) {
#pragma unroll
      for (int i = 0; i < kWidth; ++i) sum[t * kOut + o] = fmaf(w[o][i], x[i], sum[t * kOut + o]);
    }
  }
}

template <int kSums>
__device__ inline void keep_sums(const float (&sum)[kSums], float (&partial)[kSums]) {
  constexpr int kLanesEach = kWarp / kSums;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const float total = sum_lanes_each(sum);
  if (lane % kLanesEach == 0) partial[lane / kLanesEach] = total;
}

// The block's tiles begin with `first`; partial holds the sums of its warps.
template <int kOut, int kSums, typename T>
__device__ inline void store_tiles(const LinearGemvParams<T>& p, const Split& by, int64_t first,
                                   const float (*partial)[kSums]) {
  for (int i = static_cast<int>(threadIdx.x); i < by.places * kSums; i += static_cast<int>(blockDim.x)) {
    const int place = i / kSums, t = i % kSums / kOut;
    const int64_t column = (first + place) * kOut + i % kOut;
    if (t >= p.rows || column >= p.out) continue;
    float total = 0;
    for (int s = 0; s < by.split; ++s) total += partial[place * by.split + s][i % kSums];
    T* y = p.y + t * p.y_stride + column;
    if (p.bias != nullptr) total += to_float(p.bias[column]);
    if (p.accumulate) total += to_float(*y);
    *y = from_float<T>(total);
  }
}

// x comes from the first-level cache, which the weight passes by.
template <typename T, int kWidth, int kRows, int kOut, int kUnroll>
__global__ void __launch_bounds__(kMostSplit* kWarp, kRows > 1 ? 2 : 1)
    linear_gemv_kernel(LinearGemvParams<T> p, Split by) {
  __shared__ float partial[kMostSplit][kRows * kOut];
  const int lane = static_cast<int>(threadIdx.x) % kWarp, warp = static_cast<int>(threadIdx.x) / kWarp;
  const int64_t packs = p.in / kWidth, step = static_cast<int64_t>(by.split) * kWarp;
  const int64_t tiles = ceil_div(p.out, kOut), stride = static_cast<int64_t>(gridDim.x) * by.places;
  for (int64_t first = static_cast<int64_t>(blockIdx.x) * by.places; first < tiles; first += stride) {
    const T* weight[kOut];
#pragma unroll
    for (int o = 0; o < kOut; ++o) {
      weight[o] = p.weight + min((first + warp / by.split) * kOut + o, p.out - 1) * p.in;
    }
    float sum[kRows * kOut] = {};
    const auto add_batch = [&]<bool kIsWhole>(int64_t pack) {
      float w[kUnroll][kOut][kWidth];
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
        if (!kIsWhole && pack + u * step >= packs) break;
#pragma unroll
        for (int o = 0; o < kOut; ++o) load_pack_once<kWidth>(weight[o] + (pack + u * step) * kWidth, w[u][o]);
      }
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
        if (!kIsWhole && pack + u * step >= packs) break;
        add_products<kWidth, kRows, kOut>(p, (pack + u * step) * kWidth, w[u], sum);
      }
    };
    int64_t run = static_cast<int64_t>(warp % by.split) * kWarp;
    for (; run + (kUnroll - 1) * step + kWarp <= packs; run += kUnroll * step) {
      add_batch.template operator()<true>(run + lane);
    }
    if (run < packs) add_batch.template operator()<false>(run + lane);
    keep_sums(sum, partial[warp]);
    __syncthreads();
    store_tiles<kOut>(p, by, first, partial);
    __syncthreads();  // partial has been read
  }
}

constexpr int kRingRows = 8;
constexpr int kRingOut = 4;
constexpr int kStages = 2;
constexpr int kRingWarps = 16;  // of an SM: what the registers allow

// The same sums by blocks that stay: the weight comes through a ring in shared memory of which every lane reads what it
// wrote, and the first runs of a warp's next tile are on their way while it sums up this one.
template <typename T>
__global__ void __launch_bounds__(kMostSplit* kWarp, 2) linear_gemv_ring_kernel(LinearGemvParams<T> p, Split by) {
  constexpr int kWidth = kPackWidth<T>, kRows = kRingRows, kOut = kRingOut;
  using Slot = Pack<T, kWidth>[kOut][kWarp];
  __shared__ float partial[2][kMostSplit][kRows * kOut];
  const int lane = static_cast<int>(threadIdx.x) % kWarp, warp = static_cast<int>(threadIdx.x) / kWarp;
  Slot* const ring = reinterpret_cast<Slot*>(dynamic_shared()) + warp * kStages;
  const int64_t packs = p.in / kWidth, step = static_cast<int64_t>(by.split) * kWarp;
  const int64_t begin = static_cast<int64_t>(warp % by.split) * kWarp + lane;
  const int64_t tiles = ceil_div(p.out, kOut), stride = static_cast<int64_t>(gridDim.x) * by.places;
  const int64_t block_first = static_cast<int64_t>(blockIdx.x) * by.places;

  int64_t tile_ahead = block_first + warp / by.split, pack_ahead = begin;
  int slot_ahead = 0, slot = 0;
  const auto start_ahead = [&] {
    if (tile_ahead < tiles && pack_ahead < packs) {
      const T* row = p.weight + tile_ahead * kOut * p.in + pack_ahead * kWidth;
#pragma unroll
      for (int o = 0; o < kOut; ++o) {
        copy_async(&ring[slot_ahead][o][lane], row);
        if (tile_ahead * kOut + o + 1 < p.out) row += p.in;
      }
    }
    commit_copies();
    slot_ahead = (slot_ahead + 1) % kStages;
    pack_ahead += step;
    if (pack_ahead - lane >= packs) {
      pack_ahead = begin;
      tile_ahead += stride;
    }
  };
#pragma unroll
  for (int s = 0; s < kStages - 1; ++s) start_ahead();
  int turn = 0;
  for (int64_t first = block_first; first < tiles; first += stride) {
    float sum[kRows * kOut] = {};
    for (int64_t pack = begin; pack - lane < packs; pack += step) {
      start_ahead();
      wait_for_copies_but<kStages - 1>();
      if (pack < packs) {
        float w[kOut][kWidth];
#pragma unroll
        for (int o = 0; o < kOut; ++o) load_pack<kWidth>(ring[slot][o][lane].at, w[o]);
        add_products<kWidth, kRows, kOut>(p, pack * kWidth, w, sum);
      }
      slot = (slot + 1) % kStages;
    }
    keep_sums(sum, partial[turn][warp]);
    __syncthreads();
    store_tiles<kOut>(p, by, first, partial[turn]);
    turn = 1 - turn;  // read until the next barrier, written after it
  }
}

template <typename T, int kRows, int kOut, int kUnroll>
void start(const LinearGemvParams<T>& p, cudaStream_t stream, bool is_packed) {
  constexpr int kWidth = kPackWidth<T>;
  const Split by = split_of(p.in / (is_packed ? kWidth : 1));
  launch(
      "linear_gemv",
      is_packed ? linear_gemv_kernel<T, kWidth, kRows, kOut, kUnroll> : linear_gemv_kernel<T, 1, kRows, kOut, kUnroll>,
      ceil_div(ceil_div(p.out, kOut), by.places), by.warps() * kWarp, stream, p, by);
}

template <typename T>
void start_ring(const LinearGemvParams<T>& p, cudaStream_t stream) {
  const Split by = split_of(p.in / kPackWidth<T>);
  int device = 0, multiprocessors = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  check(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device), "cudaDeviceGetAttribute");
  constexpr int kRingBytes = kStages * kRingOut * kWarp * 16;
  launch_shared("linear_gemv", linear_gemv_ring_kernel<T>,
                std::min<int64_t>(ceil_div(ceil_div(p.out, kRingOut), by.places),
                                  int64_t{multiprocessors} * (kRingWarps / by.warps())),
                by.warps() * kWarp, by.warps() * kRingBytes, stream, p, by);
}

}  // namespace

template <typename T>
void linear_gemv(const LinearGemvParams<T>& p, cudaStream_t stream) {
  constexpr const char* kName = "linear_gemv";
  require_pointer(kName, "x", p.x);
  require_pointer(kName, "weight", p.weight);
  require_pointer(kName, "y", p.y);
  require_range(kName, "rows", p.rows, 1, kGemvRows);
  require_range(kName, "in", p.in, 1, kAnySize);
  require_range(kName, "out", p.out, 1, kAnySize);
  require_stride(kName, "x_stride", p.x_stride, p.in);
  require_stride(kName, "y_stride", p.y_stride, p.out);
  const bool is_packed = is_packable<kPackWidth<T>, T>({p.x, p.weight}, {p.in, p.x_stride});
  if (p.rows == 1) {
    start<T, 1, 2, 4>(p, stream, is_packed);
  } else if (p.rows == 2) {
    start<T, 2, 4, 2>(p, stream, is_packed);
  } else if (p.rows <= 4) {
    start<T, 4, 4, 2>(p, stream, is_packed);
  } else if (is_packed) {
    start_ring(p, stream);
  } else {
    start<T, 8, 4, 1>(p, stream, false);
  }
}

template void linear_gemv<float>(const LinearGemvParams<float>&, cudaStream_t);

}  // namespace assay::fast
