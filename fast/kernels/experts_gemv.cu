#include "fast/kernels/activation.hpp"
#include "fast/kernels/experts.hpp"
#include "fast/kernels/experts_require.hpp"
#include "fast/kernels/gemv.cuh"
#include "fast/kernels/launch.cuh"
#include "fast/kernels/storage.cuh"

namespace assay::fast {
namespace {

// Pairs among which those of one expert are found, so that its matrices are read once for all of them.
constexpr int kWindow = 256;

constexpr int kHiddenThreads = 128;
constexpr int kHiddenWarps = kHiddenThreads / kWarp;
constexpr int kStreams = 4;  // rows of a first matrix that a warp reads
constexpr int kHiddenUnroll = 2;

// The pairs of the window of `pair` that chose its expert, ascending, as places in the window; none where an earlier
// one has them. Returns how many.
__device__ inline int gather_sharers(const int32_t* experts, int64_t pairs, int64_t pair, uint8_t* sharers) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int64_t base = pair / kWindow * kWindow;
  const int count = static_cast<int>(min(pairs - base, static_cast<int64_t>(kWindow)));
  const int own = static_cast<int>(pair - base);
  const int32_t expert = experts[pair];
  int found = 0;
  for (int first = 0; first < count; first += kWarp) {
    const int place = first + lane;
    const bool shares = place < count && experts[base + place] == expert;
    const unsigned all = __ballot_sync(kFullWarp, shares);
    if (first <= own && all != 0 && found == 0 && first + __ffs(static_cast<int>(all)) - 1 < own) return 0;
    if (shares) sharers[found + __popc(all & ((1u << lane) - 1))] = static_cast<uint8_t>(place);
    found += __popc(all);
  }
  __syncwarp();
  return found;
}

// A warp takes kStreams rows of an expert's first matrix, gate and up of one column side by side, through the rows of x
// that chose the expert, kRows at a time. Columns past the last repeat it.
template <typename T, int kWidth, ActivationKind kKind, int kRows>
__global__ void __launch_bounds__(kHiddenThreads, 4) experts_hidden_kernel(ExpertsParams<T> p, float* hidden) {
  const int halves = p.is_gated ? 2 : 1, columns = kStreams / halves;
  constexpr int kSums = kRows * kStreams;
  __shared__ uint8_t sharers_of[kHiddenWarps][kWindow];
  const int lane = static_cast<int>(threadIdx.x) % kWarp, warp = static_cast<int>(threadIdx.x) / kWarp;
  uint8_t* sharers = sharers_of[warp];
  const int64_t packs = p.width / kWidth, pairs = p.tokens * p.chosen;
  const int64_t tiles = ceil_div(p.hidden_width, columns);
  for (int64_t item = static_cast<int64_t>(blockIdx.x) * kHiddenWarps + warp; item < pairs * tiles;
       item += static_cast<int64_t>(gridDim.x) * kHiddenWarps) {
    const int64_t pair = item / tiles, tile = item - pair * tiles;
    const int64_t base = kRows == 1 ? pair : pair / kWindow * kWindow;
    int found = 1;
    if constexpr (kRows > 1) found = gather_sharers(p.experts, pairs, pair, sharers);
    const T* row[kStreams];
#pragma unroll
    for (int s = 0; s < kStreams; ++s) {
      const int64_t f = min(tile * columns + s / halves, p.hidden_width - 1);
      row[s] = p.first + (p.experts[pair] * (halves * p.hidden_width) + s % halves * p.hidden_width + f) * p.width;
    }
    for (int first = 0; first < found; first += kRows) {
      const T* x[kRows];
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        const int64_t at = kRows == 1 ? pair : base + sharers[min(first + r, found - 1)];
        x[r] = p.x + at / p.chosen * p.x_stride;
      }
      float sum[kSums] = {};
      for (int64_t pack = lane; pack < packs; pack += kHiddenUnroll * kWarp) {
        float w[kHiddenUnroll][kStreams][kWidth];
#pragma unroll
        for (int u = 0; u < kHiddenUnroll; ++u) {
#pragma unroll
          for (int s = 0; s < kStreams; ++s) {
            if (pack + u * kWarp < packs) load_pack_once<kWidth>(row[s] + (pack + u * kWarp) * kWidth, w[u][s]);
          }
        }
#pragma unroll
        for (int u = 0; u < kHiddenUnroll; ++u) {
          if (pack + u * kWarp >= packs) break;
#pragma unroll
          for (int r = 0; r < kRows; ++r) {
            if (first + r >= found) break;
            float left[kWidth];
            load_pack<kWidth>(x[r] + (pack + u * kWarp) * kWidth, left);
#pragma unroll
            for (int s = 0; s < kStreams; ++s) {
#pragma unroll
              for (int i = 0; i < kWidth; ++i) {
                sum[r * kStreams + s] = fmaf(left[i], w[u][s][i], sum[r * kStreams + s]);
              }
            }
          }
        }
      }
      constexpr int kLanesEach = kWarp / kSums;
      const float total = sum_lanes_each(sum);
      float value = activate<kKind>(total);
      if (p.is_gated) value *= __shfl_down_sync(kFullWarp, total, kLanesEach);
      const int r = lane / kLanesEach / kStreams, s = lane / kLanesEach % kStreams;
      const int64_t f = tile * columns + s / halves;
      if (lane % kLanesEach != 0 || s % halves != 0 || first + r >= found || f >= p.hidden_width) continue;
      const int64_t at = kRows == 1 ? pair : base + sharers[first + r];
      hidden[at * p.hidden_width + f] = value;
    }
    __syncwarp();  // the list has been read
  }
}

constexpr int kDownWarps = 8;
constexpr int kDownColumns = 8;
constexpr int kDownUnroll = 2;
constexpr int kSlots = 512;  // products of a row of down with the share of a pair's hidden that a warp took
constexpr int kMostTokens = 8;

// Warps to a row of down, by its depth alone.
inline int split_of(int64_t packs) {
  int split = 1;
  while (split < kDownWarps && packs >= static_cast<int64_t>(split) * 2 * kDownUnroll * kWarp) split *= 2;
  return split;
}

// Which of a block's pairs chose the same expert, as chains.
struct Sharing {
  int32_t expert_of[kWindow];
  int16_t next_of[kWindow];  // the next pair of the same expert; -1: none
  bool is_first[kWindow];
  int16_t firsts[kWindow];  // the heads of the chains, ascending
  int count;                // of chains
};

// All threads of the block take part, and find the lists complete.
__device__ inline void list_experts(const int32_t* experts, int pairs, Sharing& sharing) {
  const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
  for (int i = thread; i < pairs; i += threads) sharing.expert_of[i] = experts[i];
  __syncthreads();
  for (int i = thread; i < pairs; i += threads) {
    const int32_t expert = sharing.expert_of[i];
    bool is_first = true;
    int next = -1;
    for (int j = 0; j < pairs; ++j) {
      if (sharing.expert_of[j] != expert) continue;
      if (j < i) is_first = false;
      if (j > i && next < 0) next = j;
    }
    sharing.next_of[i] = static_cast<int16_t>(next);
    sharing.is_first[i] = is_first;
  }
  __syncthreads();
  if (thread < kWarp) {
    int count = 0;
    for (int first = 0; first < pairs; first += kWarp) {
      const int at = first + thread;
      const bool is_first = at < pairs && sharing.is_first[at];
      const unsigned all = __ballot_sync(kFullWarp, is_first);
      if (is_first) sharing.firsts[count + __popc(all & ((1u << thread) - 1))] = static_cast<int16_t>(at);
      count += __popc(all);
    }
    if (thread == 0) sharing.count = count;
  }
  __syncthreads();
}

// A block takes kDownColumns neighbouring columns of y for a few tokens. Its warps go over the experts that the tokens
// chose, each once: a warp holds its share of an expert's rows in registers and multiplies it with every pair of that
// expert.
template <typename T, int kWidth>
__global__ void __launch_bounds__(kDownWarps* kWarp, 2)
    experts_down_kernel(ExpertsParams<T> p, const float* hidden, int split, int tokens_each) {
  __shared__ Sharing sharing;
  __shared__ float products[kSlots][kDownColumns];
  const int thread = static_cast<int>(threadIdx.x), lane = thread % kWarp, warp = thread / kWarp;
  const int warps = static_cast<int>(blockDim.x) / kWarp;
  const int64_t packs = p.hidden_width / kWidth;
  const int64_t tiles = ceil_div(p.width, kDownColumns);
  const int64_t groups = ceil_div(p.tokens, tokens_each);
  const int window = min(kWindow, kSlots / split);
  for (int64_t item = blockIdx.x; item < groups * tiles; item += gridDim.x) {
    const int64_t group = item / tiles, first_column = (item - group * tiles) * kDownColumns;
    const int64_t first_token = group * tokens_each;
    const int tokens = static_cast<int>(min(p.tokens - first_token, static_cast<int64_t>(tokens_each)));
    const int64_t pairs_end = (first_token + tokens) * p.chosen;
    float sum = 0;  // of token thread / kDownColumns, column thread % kDownColumns
    for (int64_t base = first_token * p.chosen; base < pairs_end; base += window) {
      const int count = static_cast<int>(min(pairs_end - base, static_cast<int64_t>(window)));
      list_experts(p.experts + base, count, sharing);
      for (int share = warp; share < sharing.count * split; share += warps) {
        const int first = sharing.firsts[share / split], part = share % split;
        const T* row[kDownColumns];
#pragma unroll
        for (int c = 0; c < kDownColumns; ++c) {
          row[c] = p.down + (sharing.expert_of[first] * p.width + min(first_column + c, p.width - 1)) * p.hidden_width;
        }
        for (int64_t run = static_cast<int64_t>(part) * kWarp * kDownUnroll; run < packs;
             run += static_cast<int64_t>(split) * kWarp * kDownUnroll) {
          float w[kDownUnroll][kDownColumns][kWidth];
#pragma unroll
          for (int u = 0; u < kDownUnroll; ++u) {
            const int64_t pack = run + u * kWarp + lane;
#pragma unroll
            for (int c = 0; c < kDownColumns; ++c) {
              if (pack < packs) load_pack_once<kWidth>(row[c] + pack * kWidth, w[u][c]);
            }
          }
          for (int place = first; place >= 0; place = sharing.next_of[place]) {
            const float* h = hidden + (base + place) * p.hidden_width;
            float dot[kDownColumns] = {};
#pragma unroll
            for (int u = 0; u < kDownUnroll; ++u) {
              const int64_t pack = run + u * kWarp + lane;
              if (pack >= packs) break;
              float left[kWidth];
              load_pack<kWidth>(h + pack * kWidth, left);
#pragma unroll
              for (int c = 0; c < kDownColumns; ++c) {
#pragma unroll
                for (int i = 0; i < kWidth; ++i) dot[c] = fmaf(left[i], w[u][c][i], dot[c]);
              }
            }
            constexpr int kLanesEach = kWarp / kDownColumns;
            const float total = sum_lanes_each(dot);
            float* product = &products[place * split + part][lane / kLanesEach];
            if (lane % kLanesEach == 0)
              *product = run < static_cast<int64_t>(split) * kWarp * kDownUnroll ? total : *product + total;
          }
        }
      }
      __syncthreads();
      const int64_t own = (first_token + thread / kDownColumns) * p.chosen - base;
      const int from = static_cast<int>(max(own, int64_t{0})),
                to = static_cast<int>(min(own + p.chosen, int64_t{count}));
      if (thread < tokens * kDownColumns) {
        for (int place = from; place < to; ++place) {
          float product = 0;
          for (int s = 0; s < split; ++s) product += products[place * split + s][thread % kDownColumns];
          sum = fmaf(p.weights[base + place], product, sum);
        }
      }
      __syncthreads();  // the products and the lists have been read
    }
    const int64_t column = first_column + thread % kDownColumns;
    if (thread < tokens * kDownColumns && column < p.width) {
      p.y[(first_token + thread / kDownColumns) * p.width + column] = from_float<T>(sum);
    }
  }
}

template <typename T, int kRows>
void start_hidden(const ExpertsParams<T>& p, float* hidden, cudaStream_t stream) {
  constexpr int kWidth = 4;
  const bool is_packed = is_packable<kWidth, T>({p.x, p.first}, {p.width, p.x_stride});
  const int64_t columns = p.is_gated ? kStreams / 2 : kStreams;
  with_activation(p.activation, [&]<ActivationKind kKind>() {
    launch("experts_gemv",
           is_packed ? experts_hidden_kernel<T, kWidth, kKind, kRows> : experts_hidden_kernel<T, 1, kKind, kRows>,
           ceil_div(p.tokens * p.chosen * ceil_div(p.hidden_width, columns), kHiddenWarps), kHiddenThreads, stream, p,
           hidden);
  });
}

template <typename T>
void start_down(const ExpertsParams<T>& p, const float* hidden, cudaStream_t stream) {
  constexpr int kWidth = 4;
  const bool is_packed = is_packable<kWidth, T>({p.down}, {p.hidden_width});
  const int split = split_of(p.hidden_width / (is_packed ? kWidth : 1));
  const int64_t window = std::min(kWindow, kSlots / split);
  const int64_t tokens_each = std::clamp<int64_t>(window / p.chosen, 1, std::min<int64_t>(kMostTokens, p.tokens));
  const int64_t shares = std::min(window, tokens_each * p.chosen) * split;
  const int64_t warps = ceil_div(shares, ceil_div(shares, kDownWarps));
  launch("experts_gemv", is_packed ? experts_down_kernel<T, kWidth> : experts_down_kernel<T, 1>,
         ceil_div(p.tokens, tokens_each) * ceil_div(p.width, kDownColumns), static_cast<int>(warps) * kWarp, stream, p,
         hidden, split, static_cast<int>(tokens_each));
}

}  // namespace

template <typename T>
size_t experts_gemv_workspace_bytes(const ExpertsParams<T>& p) {
  require_experts_sizes("experts_gemv", p);
  return static_cast<size_t>(p.tokens * p.chosen * p.hidden_width) * sizeof(float);
}

template <typename T>
void experts_gemv(const ExpertsParams<T>& p, cudaStream_t stream) {
  constexpr const char* kName = "experts_gemv";
  require_experts_sizes(kName, p);
  require_experts_operands(kName, p);
  auto* hidden = static_cast<float*>(p.workspace);
  if (p.tokens == 1) {
    start_hidden<T, 1>(p, hidden, stream);
  } else {
    start_hidden<T, 4>(p, hidden, stream);
  }
  start_down<T>(p, hidden, stream);
}

template size_t experts_gemv_workspace_bytes<float>(const ExpertsParams<float>&);
template void experts_gemv<float>(const ExpertsParams<float>&, cudaStream_t);

}  // namespace assay::fast
