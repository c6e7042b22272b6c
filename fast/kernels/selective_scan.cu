#include <type_traits>

#include "fast/kernels/async_rows.cuh"
#include "fast/kernels/channel_tile.cuh"
#include "fast/kernels/decay.cuh"
#include "fast/kernels/launch.cuh"
#include "fast/kernels/math.hpp"
#include "fast/kernels/selective_scan.hpp"
#include "fast/kernels/selective_scan_require.hpp"
#include "fast/kernels/storage.cuh"

namespace assay::fast {
namespace {

constexpr int64_t kWantedBlocks = 660;  // 132 SMs x 5, all at work at once
constexpr int64_t kShortestSegment = 64;
constexpr int64_t kLongestSegment = 1 << 30;  // steps of a segment are counted in 32 bits

// How a block is laid out for N states: kLanes neighbouring lanes share kWide channels and own kOwn states of each;
// kSteps time steps are staged in shared memory at a time.
template <int kLanesValue, int kOwnValue, int kWideValue, int kStepsValue, int kWarpsValue, int kResidentValue>
struct Layout {
  static constexpr int kLanes = kLanesValue;
  static constexpr int kOwn = kOwnValue;
  static constexpr int kWide = kWideValue;
  static constexpr int kSteps = kStepsValue;
  static constexpr int kWarps = kWarpsValue;
  static constexpr int kResident = kResidentValue;  // blocks of an SM
  static constexpr int kThreads = kWarp * kWarps;
  static constexpr int kStates = kLanes * kOwn;
  static constexpr int kCopiers = kStates / kChunk > kWarp ? kStates / kChunk : kWarp;  // threads that copy a tile
  static constexpr int kWarpChannels = kWarp / kLanes * kWide;
  static constexpr int kChannels = kWarpChannels * kWarps;
};

template <typename Function>
void with_layout(int64_t states, Function&& function) {
  if (states <= 4) return function(Layout<1, 4, 1, 16, 2, 10>{});
  if (states <= 8) return function(Layout<2, 4, 2, 16, 2, 10>{});
  if (states <= 16) return function(Layout<2, 8, 1, 16, 4, 5>{});
  if (states <= 32) return function(Layout<8, 4, 2, 16, 4, 5>{});
  if (states <= 64) return function(Layout<16, 4, 2, 16, 4, 5>{});
  if (states <= 128) return function(Layout<32, 4, 2, 8, 4, 5>{});
  return function(Layout<32, 8, 2, 8, 4, 4>{});
}

// Time in `count` segments of `steps` steps (the last may be shorter). ends [B, count, I, N] holds the state in which a
// segment ends that starts from zero, and in place of the last one's the initial state; total_dt [B, count, I] the sum
// of d.
struct Segments {
  int64_t steps = 0;
  int64_t count = 0;
  float* ends = nullptr;
  float* total_dt = nullptr;
};

template <typename T>
Segments cut(const SelectiveScanParams<T>& p) {
  Segments segments;
  with_layout(p.states, [&](auto layout) {
    const int64_t blocks = p.batch * p.groups * tiles_of_group<layout.kChannels>(p);
    const int64_t count = std::max(ceil_div(p.length, kLongestSegment),
                                   std::min((kWantedBlocks + blocks / 2) / blocks, p.length / kShortestSegment));
    segments.steps = ceil_div(ceil_div(p.length, count), layout.kSteps) * layout.kSteps;
    segments.count = ceil_div(p.length, segments.steps);
  });
  if (segments.count > 1 && p.workspace != nullptr) {
    segments.ends = static_cast<float*>(p.workspace);
    segments.total_dt = segments.ends + p.batch * segments.count * p.channels * p.states;
  }
  return segments;
}

enum class Pass { kCarry, kOutput };

template <typename L, Pass kPass>
struct alignas(32) Tile {
  static constexpr int kOutputSteps = kPass == Pass::kOutput ? L::kSteps : 1;
  float x[L::kSteps][L::kChannels];
  float d[L::kSteps][L::kChannels];
  float z[kOutputSteps][L::kChannels];
  float b[L::kSteps][L::kStates];
  float c[kOutputSteps][L::kStates];
};

// A warp's sums over the states that each lane owns.
template <typename L>
using Partial = float[L::kSteps][L::kLanes][L::kWarpChannels];

// The sum of many summands, without what rounding loses.
struct LongSum {
  float sum = 0;
  float lost = 0;
  __device__ void add(float value) {
    const float next = sum + value;
    const float part = next - sum;
    lost += (sum - (next - part)) + (value - part);
    sum = next;
  }
  __device__ float total() const { return sum + lost; }
};

// values[0] += all the others, as a balanced tree.
template <int kCount, int kWidth>
__device__ inline void sum_tree(float (*values)[kWidth]) {
  if constexpr (kCount > 1) {
    constexpr int kHalf = kCount / 2;
#pragma unroll
    for (int i = 0; i < kHalf; ++i) {
#pragma unroll
      for (int k = 0; k < kWidth; ++k) values[i][k] += values[i + kHalf][k];
    }
    sum_tree<kHalf, kWidth>(values);
  }
}

// y from a warp's partial sums, in chunks of up to kChunk channels. at: of step 0 and the block's first channel, in y.
template <typename T, typename L>
__device__ inline void write_outputs(const SelectiveScanParams<T>& p, const Tile<L, Pass::kOutput>& tile,
                                     const Partial<L>& partial, const float (&skip)[L::kChannels], int channels,
                                     int steps, int64_t at, bool is_packed) {
  constexpr int kWidth = L::kWarpChannels < kChunk ? L::kWarpChannels : kChunk;
  constexpr int kChunks = L::kWarpChannels / kWidth;
  constexpr int kPass = kWarp / kChunks;  // steps that the warp writes at once
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int in_warp = lane % kChunks * kWidth;
  const int in_block = static_cast<int>(threadIdx.x) / kWarp * L::kWarpChannels + in_warp;
  const int valid = min(channels - in_block, kWidth);
  if (valid <= 0) return;
  const auto store = [&](T* to, const float(&values)[kWidth]) {
    if (is_packed) return store_pack<kWidth>(to, values);
#pragma unroll
    for (int k = 0; k < kWidth; ++k) {
      if (k < valid) to[k] = from_float<T>(values[k]);
    }
  };
  at += in_block;
#pragma unroll
  for (int first = 0; first < L::kSteps; first += kPass) {
    const int step = first + lane / kChunks;
    if (step >= steps) break;
    float y[L::kLanes][kWidth], x[kWidth], d[kWidth];
#pragma unroll
    for (int i = 0; i < L::kLanes; ++i) load_pack<kWidth>(&partial[step][i][in_warp], y[i]);
    sum_tree<L::kLanes, kWidth>(y);
    load_pack<kWidth>(&tile.x[step][in_block], x);
    load_pack<kWidth>(&skip[in_block], d);
#pragma unroll
    for (int k = 0; k < kWidth; ++k) y[0][k] = fmaf(d[k], x[k], y[0][k]);
    const int64_t to = at + step * p.channels;
    if (p.ungated != nullptr) store(p.ungated + to, y[0]);
    if (p.z != nullptr) {
      load_pack<kWidth>(&tile.z[step][in_block], x);
#pragma unroll
      for (int k = 0; k < kWidth; ++k) y[0][k] *= silu(x[k]);
    }
    store(p.y + to, y[0]);
  }
}

// The states from which a segment starts, those that a thread owns of one channel.
template <typename T, int kOwn>
__device__ inline void start_of_segment(const SelectiveScanParams<T>& p, const Segments& segments, int64_t row,
                                        int64_t segment, int64_t channel, int64_t first_state, const float (&a)[kOwn],
                                        float (&h)[kOwn]) {
  const auto at = [&](int64_t of) { return (row * segments.count + of) * p.channels + channel; };
  const auto load = [&](const float* from, float(&to)[kOwn]) {
#pragma unroll
    for (int k = 0; k < kOwn; ++k) to[k] = first_state + k < p.states ? from[first_state + k] : 0.0f;
  };
  // initial_state itself may be overwritten by now: it may be final_state.
  load(segments.ends + at(segments.count - 1) * p.states, h);
#pragma unroll 2
  for (int64_t s = 0; s < segment; ++s) {
    float end[kOwn];
    load(segments.ends + at(s) * p.states, end);
    const float total = segments.total_dt[at(s)];
#pragma unroll
    for (int k = 0; k < kOwn; ++k) h[k] = fmaf(precise_exp(a[k] * total), h[k], end[k]);
  }
}

// are_inputs_packed, are_outputs_packed: every chunk of a row is 16-byte aligned, and no row ends inside one.
template <typename T, typename L, Pass kPass>
__global__ void __launch_bounds__(L::kThreads, L::kResident)
    selective_scan_kernel(SelectiveScanParams<T> p, Segments segments, bool are_inputs_packed,
                          bool are_outputs_packed) {
  constexpr bool kIsOutput = kPass == Pass::kOutput;
  constexpr int kGroup = 4;  // steps of an unrolled round
  __shared__ Tile<L, kPass> tiles[2];
  alignas(16) __shared__ Partial<L> partial[kIsOutput ? L::kWarps : 1];
  alignas(16) __shared__ float skip[L::kChannels];
  __shared__ float bias[L::kChannels];

  const int thread = static_cast<int>(threadIdx.x);
  const int lane = thread % L::kLanes;
  const int warp = thread / kWarp;
  const int in_warp = thread % kWarp / L::kLanes * L::kWide;
  const int own_channel = warp * L::kWarpChannels + in_warp;
  const int first_state = lane * L::kOwn;
  const int64_t channel_tiles = p.groups * tiles_of_group<L::kChannels>(p);
  // The last segment's end is the final state, which the output pass writes.
  const int64_t segment_count = kIsOutput ? segments.count : segments.count - 1;

  for (int64_t item = blockIdx.x; item < p.batch * segment_count * channel_tiles; item += gridDim.x) {
    const int64_t row_segment = quotient(item, channel_tiles);
    const int64_t row = quotient(row_segment, segment_count), segment = row_segment - row * segment_count;
    const ChannelTile block = channel_tile<L::kChannels>(p, item - row_segment * channel_tiles);
    const int channels = static_cast<int>(min(block.count, int64_t{L::kChannels}));
    const int64_t begin = row * p.length + segment * segments.steps;  // a row of the [B * L, ...] views
    const int length = static_cast<int>(min(segments.steps, p.length - segment * segments.steps));

    // The tile from step `first` of the segment on. A warp (two for many states) copies all of it, in turn, so that the
    // others spend no instructions on addresses.
    const auto copy = [&](Tile<L, kPass>& tile, int first, int turn) {
      if (thread / L::kCopiers != turn % (L::kThreads / L::kCopiers)) return;
      const int steps = min(L::kSteps, length - first);
      const auto channels_of = [&](float(&to)[L::kSteps][L::kChannels], const T* from, int64_t stride) {
        AsyncRows<T, L::kCopiers, L::kSteps, L::kChannels>(from + (begin + first) * stride + block.first, stride,
                                                           channels, thread % L::kCopiers)
            .copy(to, steps, are_inputs_packed);
      };
      const auto states_of = [&](float(&to)[L::kSteps][L::kStates], const T* from, int64_t stride,
                                 int64_t group_stride) {
        AsyncRows<T, L::kCopiers, L::kSteps, L::kStates> rows(
            from + (begin + first) * stride + block.group * group_stride, stride, p.states, thread % L::kCopiers);
        if (p.states < L::kStates) rows.clear(to);
        rows.copy(to, steps, are_inputs_packed);
      };
      channels_of(tile.x, p.x, p.x_stride);
      channels_of(tile.d, p.dt, p.dt_stride);
      states_of(tile.b, p.b, p.b_stride, p.b_group_stride);
      if constexpr (kIsOutput) {
        states_of(tile.c, p.c, p.c_stride, p.c_group_stride);
        if (p.z != nullptr) channels_of(tile.z, p.z, p.z_stride);
      }
    };
    copy(tiles[0], 0, 0);
    for (int i = thread; i < L::kChannels; i += L::kThreads) {
      skip[i] = i < channels ? p.skip[block.first + i] : 0.0f;
      bias[i] = i < channels && p.dt_bias != nullptr ? to_float(p.dt_bias[block.first + i]) : 0.0f;
    }

    float a[L::kWide][L::kOwn], h[L::kWide][L::kOwn];
    LongSum total_dt[L::kWide];
#pragma unroll
    for (int w = 0; w < L::kWide; ++w) {
      const int64_t channel = block.first + own_channel + w;
      const bool has_channel = own_channel + w < channels;
      const int64_t state_at = (row * p.channels + channel) * p.states + first_state;
      const int64_t initial_at =
          ((row * segments.count + segments.count - 1) * p.channels + channel) * p.states + first_state;
#pragma unroll
      for (int k = 0; k < L::kOwn; ++k) {
        const bool is_held = has_channel && first_state + k < p.states;
        a[w][k] = is_held ? p.a[channel * p.states + first_state + k] : 0.0f;
        h[w][k] = is_held && p.initial_state != nullptr && segments.count == 1 ? p.initial_state[state_at + k] : 0.0f;
        if (!kIsOutput && segment == 0 && is_held) {
          segments.ends[initial_at + k] = p.initial_state != nullptr ? p.initial_state[state_at + k] : 0.0f;
        }
      }
      if (kIsOutput && segments.count > 1 && has_channel) {
        start_of_segment(p, segments, row, segment, channel, first_state, a[w], h[w]);
      }
#pragma unroll
      for (int k = 0; k < L::kOwn; ++k) a[w][k] = in_powers_of_two(a[w][k]);
    }
    const bool is_d_written = kIsOutput && p.dt_out != nullptr;

    int turn = 0;
    for (int first = 0; first < length; first += L::kSteps, ++turn) {
      Tile<L, kPass>& tile = tiles[turn % 2];
      const int steps = min(L::kSteps, length - first);
      wait_for_copies();
      __syncthreads();
      if (first + L::kSteps < length) copy(tiles[(turn + 1) % 2], first + L::kSteps, turn + 1);
      if (p.dt_bias != nullptr || is_d_written) {
        // Each warp the channels that it reads itself.
        for (int i = thread % kWarp; i < steps * L::kWarpChannels; i += kWarp) {
          const int step = i / L::kWarpChannels;
          const int at = warp * L::kWarpChannels + i % L::kWarpChannels;
          float d = tile.d[step][at];
          if (p.dt_bias != nullptr) tile.d[step][at] = d = softplus(d + bias[at]);
          if (is_d_written && at < channels) {
            p.dt_out[(begin + first + step) * p.channels + block.first + at] = from_float<T>(d);
          }
        }
        __syncwarp();
      }

      struct Operands {
        float d[L::kWide], x[L::kWide], b[L::kOwn], c[L::kOwn];
      };
      const auto load = [&](int step, Operands& of_step) {
        load_pack<L::kWide>(&tile.d[step][own_channel], of_step.d);
        load_pack<L::kWide>(&tile.x[step][own_channel], of_step.x);
        load_pack<L::kOwn>(&tile.b[step][first_state], of_step.b);
        if constexpr (kIsOutput) load_pack<L::kOwn>(&tile.c[step][first_state], of_step.c);
      };
      float tile_dt[L::kWide] = {};
      Operands next;
      load(0, next);
      const auto walk = [&](int from, auto count) {
#pragma unroll
        for (int i = 0; i < decltype(count)::value; ++i) {
          // The next step's are on the way while this one's are used.
          const Operands now = next;
          load(i + 1 < decltype(count)::value ? from + i + 1 : (from + i + 1) % L::kSteps, next);
          float powers[L::kWide * L::kOwn], decay[L::kWide * L::kOwn], y[L::kWide];
#pragma unroll
          for (int n = 0; n < L::kWide * L::kOwn; ++n) powers[n] = now.d[n / L::kOwn] * a[n / L::kOwn][n % L::kOwn];
          decays_of(powers, decay);
#pragma unroll
          for (int w = 0; w < L::kWide; ++w) {
            const float dx = now.d[w] * now.x[w];
            y[w] = 0;
#pragma unroll
            for (int k = 0; k < L::kOwn; ++k) {
              h[w][k] = fmaf(decay[w * L::kOwn + k], h[w][k], dx * now.b[k]);
              if constexpr (kIsOutput) y[w] = fmaf(h[w][k], now.c[k], y[w]);
            }
            if constexpr (!kIsOutput) tile_dt[w] += now.d[w];
          }
          if constexpr (kIsOutput) store_pack<L::kWide>(&partial[warp][from + i][lane][in_warp], y);
        }
      };
      int step = 0;
#pragma unroll 1
      for (; step + kGroup <= steps; step += kGroup) walk(step, std::integral_constant<int, kGroup>{});
#pragma unroll 1
      for (; step < steps; ++step) walk(step, std::integral_constant<int, 1>{});

      if constexpr (kIsOutput) {
        __syncwarp();
        write_outputs(p, tile, partial[warp], skip, channels, steps, (begin + first) * p.channels + block.first,
                      are_outputs_packed);
        __syncwarp();
      } else {
#pragma unroll
        for (int w = 0; w < L::kWide; ++w) total_dt[w].add(tile_dt[w]);
      }
    }

#pragma unroll
    for (int w = 0; w < L::kWide; ++w) {
      if (own_channel + w >= channels) continue;
      const int64_t channel = block.first + own_channel + w;
      float* to = nullptr;
      if constexpr (kIsOutput) {
        const bool is_last = segment == segments.count - 1;
        if (p.final_state != nullptr && is_last) to = p.final_state + (row * p.channels + channel) * p.states;
      } else {
        const int64_t at = (row * segments.count + segment) * p.channels + channel;
        to = segments.ends + at * p.states;
        if (lane == 0) segments.total_dt[at] = total_dt[w].total();
      }
      if (to == nullptr) continue;
#pragma unroll
      for (int k = 0; k < L::kOwn; ++k) {
        if (first_state + k < p.states) to[first_state + k] = h[w][k];
      }
    }
    __syncthreads();  // the tiles have been read
  }
}

}  // namespace

template <typename T>
size_t selective_scan_workspace_bytes(const SelectiveScanParams<T>& p) {
  require_range("selective_scan", "batch", p.batch, 1, kAnySize);
  require_range("selective_scan", "length", p.length, 1, kAnySize);
  require_range("selective_scan", "channels", p.channels, 1, kAnySize);
  require_range("selective_scan", "states", p.states, 1, kMaxScanStates);
  require_divides("selective_scan", "groups", p.groups, "channels", p.channels);
  const Segments segments = cut(p);
  if (segments.count == 1) return 0;
  return static_cast<size_t>(p.batch * segments.count * p.channels * (p.states + 1)) * sizeof(float);
}

template <typename T>
void selective_scan(const SelectiveScanParams<T>& p, cudaStream_t stream) {
  constexpr const char* kName = "selective_scan";
  require_scan_operands(kName, p);
  require_range(kName, "length", p.length, 1, kAnySize);
  const Segments segments = cut(p);
  if (segments.count > 1) require_pointer(kName, "workspace", p.workspace);
  const int64_t group_width = p.groups > 1 ? p.channels / p.groups : 0;
  const bool are_inputs_packed = is_packable<kChunk, T>(
      {p.x, p.dt, p.z, p.b, p.c}, {p.x_stride, p.dt_stride, p.z == nullptr ? 0 : p.z_stride, p.b_stride,
                                   p.b_group_stride, p.c_stride, p.c_group_stride, p.channels, group_width, p.states});
  const bool are_outputs_packed = is_packable<kChunk, T>({p.y, p.ungated}, {p.channels, group_width});
  with_layout(p.states, [&](auto layout) {
    using L = decltype(layout);
    const int64_t tiles = p.batch * p.groups * tiles_of_group<L::kChannels>(p);
    if (segments.count > 1) {
      launch(kName, selective_scan_kernel<T, L, Pass::kCarry>, tiles * (segments.count - 1), L::kThreads, stream, p,
             segments, are_inputs_packed, are_outputs_packed);
    }
    launch(kName, selective_scan_kernel<T, L, Pass::kOutput>, tiles * segments.count, L::kThreads, stream, p, segments,
           are_inputs_packed, are_outputs_packed);
  });
}

template size_t selective_scan_workspace_bytes<float>(const SelectiveScanParams<float>&);
template void selective_scan<float>(const SelectiveScanParams<float>&, cudaStream_t);

}  // namespace assay::fast
