#include "fast/kernels/launch.cuh"
#include "fast/kernels/math.hpp"
#include "fast/kernels/reduce.cuh"
#include "fast/kernels/require.hpp"
#include "fast/kernels/selective_scan.hpp"
#include "fast/kernels/storage.cuh"

namespace assay::fast {
namespace {

constexpr int kThreads = 128;
constexpr int64_t kMaxStates = 256;
constexpr int64_t kEnoughBlocks = 528;   // from here on time is left in one piece: 132 SMs x 4 blocks
constexpr int64_t kWantedBlocks = 1056;  // otherwise it is cut until there are about so many
constexpr int64_t kShortestSegment = 64;

// How a block is laid out for N states: kLanes neighbouring lanes share a channel and own kOwn states each; kSteps time
// steps are staged in shared memory at a time (12 to 25 KB).
template <int kLanesValue, int kOwnValue, int kStepsValue>
struct Layout {
  static constexpr int kLanes = kLanesValue;
  static constexpr int kOwn = kOwnValue;
  static constexpr int kSteps = kStepsValue;
  static constexpr int kStates = kLanes * kOwn;
  static constexpr int kChannels = kThreads / kLanes;
};

template <typename Function>
void with_layout(int64_t states, Function&& function) {
  if (states <= 4) return function(Layout<1, 4, 16>{});
  if (states <= 8) return function(Layout<2, 4, 16>{});
  if (states <= 16) return function(Layout<4, 4, 32>{});
  if (states <= 32) return function(Layout<8, 4, 32>{});
  if (states <= 64) return function(Layout<16, 4, 32>{});
  if (states <= 128) return function(Layout<32, 4, 16>{});
  return function(Layout<32, 8, 8>{});
}

// A block's channels are of one group.
template <typename L, typename Params>
__host__ __device__ int64_t tiles_of_group(const Params& p) {
  return ceil_div(p.channels / p.groups, L::kChannels);
}

// Time in `count` segments of `steps` steps (the last may be shorter). carry [B, count, I, N] holds first the state a
// segment ends in when it starts from zero, then the state it starts from; total_dt [B, count, I] its sum of d.
struct Segments {
  int64_t steps = 0;
  int64_t count = 0;
  float* carry = nullptr;
  float* total_dt = nullptr;
};

template <typename T>
Segments cut(const SelectiveScanParams<T>& p) {
  Segments segments;
  with_layout(p.states, [&](auto layout) {
    const int64_t blocks = p.batch * p.groups * tiles_of_group<decltype(layout)>(p);
    int64_t count = 1;
    if (blocks < kEnoughBlocks) {
      count = std::max<int64_t>(1, std::min(ceil_div(kWantedBlocks, blocks), p.length / kShortestSegment));
    }
    segments.steps = ceil_div(ceil_div(p.length, count), layout.kSteps) * layout.kSteps;
    segments.count = ceil_div(p.length, segments.steps);
  });
  if (segments.count > 1 && p.workspace != nullptr) {
    segments.carry = static_cast<float*>(p.workspace);
    segments.total_dt = segments.carry + p.batch * segments.count * p.channels * p.states;
  }
  return segments;
}

enum class Pass { kCarry, kOutput };

template <typename T, typename L, Pass kPass>
__global__ void __launch_bounds__(kThreads) selective_scan_kernel(SelectiveScanParams<T> p, Segments segments) {
  constexpr bool kIsOutput = kPass == Pass::kOutput;
  __shared__ float x_tile[L::kSteps][L::kChannels];
  __shared__ float d_tile[L::kSteps][L::kChannels];
  __shared__ float y_tile[kIsOutput ? L::kSteps : 1][L::kChannels];
  alignas(16) __shared__ float b_tile[L::kSteps][L::kStates];
  alignas(16) __shared__ float c_tile[kIsOutput ? L::kSteps : 1][L::kStates];

  const int lane = static_cast<int>(threadIdx.x) % L::kLanes;
  const int own_channel = static_cast<int>(threadIdx.x) / L::kLanes;
  const int first_state = lane * L::kOwn;
  const int64_t group_tiles = tiles_of_group<L>(p), group_width = p.channels / p.groups;
  const int64_t channel_tiles = p.groups * group_tiles;
  // The carry out of the last segment is the final state, which the output pass writes.
  const int64_t segment_count = kIsOutput ? segments.count : segments.count - 1;

  for (int64_t item = blockIdx.x; item < p.batch * segment_count * channel_tiles; item += gridDim.x) {
    const int64_t row_segment = item / channel_tiles;
    const int64_t tile = item - row_segment * channel_tiles;
    const int64_t group = tile / group_tiles;
    const int64_t first_channel = group * group_width + (tile - group * group_tiles) * L::kChannels;
    const int64_t end_channel = (group + 1) * group_width;
    const T* b = p.b + group * p.b_group_stride;
    const T* c = p.c + group * p.c_group_stride;
    const int64_t row = row_segment / segment_count;
    const int64_t segment = row_segment - row * segment_count;
    const int64_t channel = first_channel + own_channel;
    const bool has_channel = channel < end_channel;
    const int64_t state_at = (row * p.channels + channel) * p.states + first_state;
    const int64_t carry_at = ((row * segments.count + segment) * p.channels + channel) * p.states + first_state;

    float a[L::kOwn], h[L::kOwn];
#pragma unroll
    for (int k = 0; k < L::kOwn; ++k) {
      const bool is_held = has_channel && first_state + k < p.states;
      a[k] = is_held ? p.a[channel * p.states + first_state + k] : 0.0f;
      h[k] = 0.0f;
      if (kIsOutput && is_held) {
        if (segments.count > 1) {
          h[k] = segments.carry[carry_at + k];
        } else if (p.initial_state != nullptr) {
          h[k] = p.initial_state[state_at + k];
        }
      }
    }
    const float skip = kIsOutput && has_channel ? p.skip[channel] : 0.0f;
    float total_dt = 0;

    const int64_t end = min((segment + 1) * segments.steps, p.length);
    for (int64_t first = segment * segments.steps; first < end; first += L::kSteps) {
      const int steps = static_cast<int>(min(static_cast<int64_t>(L::kSteps), end - first));
      const int64_t base = row * p.length + first;  // row of the [B * L, ...] views

      for (int i = static_cast<int>(threadIdx.x); i < steps * L::kChannels; i += kThreads) {
        const int step = i / L::kChannels;
        const int at = i % L::kChannels;
        const int64_t from = first_channel + at;
        float x = 0, d = 0;
        if (from < end_channel) {
          x = to_float(p.x[(base + step) * p.x_stride + from]);
          d = to_float(p.dt[(base + step) * p.dt_stride + from]);
          if (p.dt_bias != nullptr) d = softplus(d + to_float(p.dt_bias[from]));
          if (kIsOutput && p.dt_out != nullptr) p.dt_out[(base + step) * p.channels + from] = from_float<T>(d);
        }
        x_tile[step][at] = x;
        d_tile[step][at] = d;
      }
      for (int i = static_cast<int>(threadIdx.x); i < steps * L::kStates; i += kThreads) {
        const int step = i / L::kStates;
        const int n = i % L::kStates;
        b_tile[step][n] = n < p.states ? to_float(b[(base + step) * p.b_stride + n]) : 0.0f;
        if constexpr (kIsOutput) {
          c_tile[step][n] = n < p.states ? to_float(c[(base + step) * p.c_stride + n]) : 0.0f;
        }
      }
      __syncthreads();

#pragma unroll 4
      for (int step = 0; step < steps; ++step) {
        const float d = d_tile[step][own_channel];
        const float x = x_tile[step][own_channel];
        const float dx = d * x;
        float y = 0;
#pragma unroll
        for (int k = 0; k < L::kOwn; ++k) {
          h[k] = fmaf(precise_exp(d * a[k]), h[k], dx * b_tile[step][first_state + k]);
          if constexpr (kIsOutput) y = fmaf(h[k], c_tile[step][first_state + k], y);
        }
        if constexpr (kIsOutput) {
          y = sum_lanes<L::kLanes>(y);
          if (lane == 0) y_tile[step][own_channel] = fmaf(skip, x, y);
        } else {
          total_dt += d;
        }
      }
      // The tiles have been read, y_tile is whole. The next write of y_tile is behind the next barrier.
      __syncthreads();

      if constexpr (kIsOutput) {
        for (int i = static_cast<int>(threadIdx.x); i < steps * L::kChannels; i += kThreads) {
          const int step = i / L::kChannels;
          const int at = i % L::kChannels;
          const int64_t to = first_channel + at;
          if (to >= end_channel) continue;
          float y = y_tile[step][at];
          const int64_t y_at = (base + step) * p.channels + to;
          if (p.ungated != nullptr) p.ungated[y_at] = from_float<T>(y);
          if (p.z != nullptr) y *= silu(to_float(p.z[(base + step) * p.z_stride + to]));
          p.y[y_at] = from_float<T>(y);
        }
      }
    }

    if (!has_channel) continue;
    float* state_out = nullptr;
    if constexpr (kIsOutput) {
      if (p.final_state != nullptr && segment == segments.count - 1) state_out = p.final_state + state_at;
    } else {
      state_out = segments.carry + carry_at;
      if (lane == 0) segments.total_dt[(row * segments.count + segment) * p.channels + channel] = total_dt;
    }
    if (state_out != nullptr) {
#pragma unroll
      for (int k = 0; k < L::kOwn; ++k) {
        if (first_state + k < p.states) state_out[k] = h[k];
      }
    }
  }
}

// Turns the segments' own ends into the states they start from, one thread a (row, channel, state).
template <typename T>
__global__ void __launch_bounds__(kThreads) selective_scan_carry_kernel(SelectiveScanParams<T> p, Segments segments) {
  const int64_t row_size = p.channels * p.states;
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < p.batch * row_size; i += step) {
    const int64_t row = i / row_size;
    const int64_t at = i - row * row_size;
    const int64_t channel = at / p.states;
    const float a = p.a[at];
    float h = p.initial_state != nullptr ? p.initial_state[i] : 0.0f;
    for (int64_t segment = 0; segment < segments.count; ++segment) {
      float* carry = segments.carry + (row * segments.count + segment) * row_size + at;
      // Nothing was left in the last segment's place.
      if (segment == segments.count - 1) {
        *carry = h;
        break;
      }
      const float end = *carry;
      *carry = h;
      h = fmaf(precise_exp(a * segments.total_dt[(row * segments.count + segment) * p.channels + channel]), h, end);
    }
  }
}

// kLanes neighbouring lanes share a (row, channel) and walk its states in packs.
template <typename T, int kLanes, int kWidth>
__global__ void __launch_bounds__(kThreads) selective_scan_update_kernel(SelectiveScanUpdateParams<T> p) {
  const int64_t packs = p.states / kWidth;
  const int64_t count = p.batch * p.channels;
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  constexpr int kItems = kThreads / kLanes;
  const int64_t group_width = p.channels / p.groups;
  // The loop is uniform in a block, since every lane takes part in the sum.
  for (int64_t first = static_cast<int64_t>(blockIdx.x) * kItems; first < count;
       first += static_cast<int64_t>(gridDim.x) * kItems) {
    const int64_t item = first + threadIdx.x / kLanes;
    const bool is_item = item < count;
    const int64_t row = is_item ? item / p.channels : 0;
    const int64_t channel = is_item ? item - row * p.channels : 0;
    const int64_t group = channel / group_width;
    const float x = to_float(p.x[row * p.x_stride + channel]);
    float d = to_float(p.dt[row * p.dt_stride + channel]);
    if (p.dt_bias != nullptr) d = softplus(d + to_float(p.dt_bias[channel]));
    const float dx = d * x;
    float y = 0;
    if (is_item) {
      for (int64_t pack = lane; pack < packs; pack += kLanes) {
        const int64_t n = pack * kWidth;
        float h[kWidth], a[kWidth], b[kWidth], c[kWidth];
        load_pack<kWidth>(p.state + item * p.states + n, h);
        load_pack<kWidth>(p.a + channel * p.states + n, a);
        load_pack<kWidth>(p.b + row * p.b_stride + group * p.b_group_stride + n, b);
        load_pack<kWidth>(p.c + row * p.c_stride + group * p.c_group_stride + n, c);
#pragma unroll
        for (int k = 0; k < kWidth; ++k) {
          h[k] = fmaf(precise_exp(d * a[k]), h[k], dx * b[k]);
          y = fmaf(h[k], c[k], y);
        }
        store_pack<kWidth>(p.state + item * p.states + n, h);
      }
    }
    y = sum_lanes<kLanes>(y);
    if (is_item && lane == 0) {
      y = fmaf(p.skip[channel], x, y);
      if (p.dt_out != nullptr) p.dt_out[item] = from_float<T>(d);
      if (p.ungated != nullptr) p.ungated[item] = from_float<T>(y);
      if (p.z != nullptr) y *= silu(to_float(p.z[row * p.z_stride + channel]));
      p.y[item] = from_float<T>(y);
    }
  }
}

template <typename T, int kWidth>
void start_update(const SelectiveScanUpdateParams<T>& p, cudaStream_t stream) {
  const int64_t packs = p.states / kWidth;
  auto start = [&](auto kernel, int lanes) {
    launch("selective_scan_update", kernel, ceil_div(p.batch * p.channels, kThreads / lanes), kThreads, stream, p);
  };
  if (packs <= 1) return start(selective_scan_update_kernel<T, 1, kWidth>, 1);
  if (packs <= 2) return start(selective_scan_update_kernel<T, 2, kWidth>, 2);
  if (packs <= 4) return start(selective_scan_update_kernel<T, 4, kWidth>, 4);
  if (packs <= 8) return start(selective_scan_update_kernel<T, 8, kWidth>, 8);
  if (packs <= 16) return start(selective_scan_update_kernel<T, 16, kWidth>, 16);
  return start(selective_scan_update_kernel<T, 32, kWidth>, 32);
}

// What the sequence and the update require alike.
template <typename Params>
void require_operands(const char* name, const Params& p) {
  require_pointer(name, "x", p.x);
  require_pointer(name, "dt", p.dt);
  require_pointer(name, "a", p.a);
  require_pointer(name, "b", p.b);
  require_pointer(name, "c", p.c);
  require_pointer(name, "skip", p.skip);
  require_pointer(name, "y", p.y);
  require_range(name, "batch", p.batch, 1, kAnySize);
  require_range(name, "channels", p.channels, 1, kAnySize);
  require_range(name, "states", p.states, 1, kMaxStates);
  require_stride(name, "x_stride", p.x_stride, p.channels);
  require_stride(name, "dt_stride", p.dt_stride, p.channels);
  require_divides(name, "groups", p.groups, "channels", p.channels);
  require_stride(name, "b_group_stride", p.b_group_stride, p.groups > 1 ? p.states : 0);
  require_stride(name, "c_group_stride", p.c_group_stride, p.groups > 1 ? p.states : 0);
  require_stride(name, "b_stride", p.b_stride, (p.groups - 1) * p.b_group_stride + p.states);
  require_stride(name, "c_stride", p.c_stride, (p.groups - 1) * p.c_group_stride + p.states);
  if (p.z != nullptr) require_stride(name, "z_stride", p.z_stride, p.channels);
}

}  // namespace

template <typename T>
size_t selective_scan_workspace_bytes(const SelectiveScanParams<T>& p) {
  require_range("selective_scan", "batch", p.batch, 1, kAnySize);
  require_range("selective_scan", "length", p.length, 1, kAnySize);
  require_range("selective_scan", "channels", p.channels, 1, kAnySize);
  require_range("selective_scan", "states", p.states, 1, kMaxStates);
  require_divides("selective_scan", "groups", p.groups, "channels", p.channels);
  const Segments segments = cut(p);
  if (segments.count == 1) return 0;
  return static_cast<size_t>(p.batch * segments.count * p.channels * (p.states + 1)) * sizeof(float);
}

template <typename T>
void selective_scan(const SelectiveScanParams<T>& p, cudaStream_t stream) {
  constexpr const char* kName = "selective_scan";
  require_operands(kName, p);
  require_range(kName, "length", p.length, 1, kAnySize);
  const Segments segments = cut(p);
  if (segments.count > 1) require_pointer(kName, "workspace", p.workspace);
  with_layout(p.states, [&](auto layout) {
    using L = decltype(layout);
    const int64_t tiles = p.batch * p.groups * tiles_of_group<L>(p);
    if (segments.count > 1) {
      launch(kName, selective_scan_kernel<T, L, Pass::kCarry>, tiles * (segments.count - 1), kThreads, stream, p,
             segments);
      launch(kName, selective_scan_carry_kernel<T>, ceil_div(p.batch * p.channels * p.states, kThreads), kThreads,
             stream, p, segments);
    }
    launch(kName, selective_scan_kernel<T, L, Pass::kOutput>, tiles * segments.count, kThreads, stream, p, segments);
  });
}

template <typename T>
void selective_scan_update(const SelectiveScanUpdateParams<T>& p, cudaStream_t stream) {
  constexpr const char* kName = "selective_scan_update";
  require_operands(kName, p);
  require_pointer(kName, "state", p.state);
  constexpr int kWidth = 4;
  if (is_packable<kWidth, T>({p.b, p.c}, {p.b_stride, p.b_group_stride, p.c_stride, p.c_group_stride}) &&
      is_packable<kWidth, float>({p.a, p.state}, {p.states})) {
    start_update<T, kWidth>(p, stream);
  } else {
    start_update<T, 1>(p, stream);
  }
}

template size_t selective_scan_workspace_bytes<float>(const SelectiveScanParams<float>&);
template void selective_scan<float>(const SelectiveScanParams<float>&, cudaStream_t);
template void selective_scan_update<float>(const SelectiveScanUpdateParams<float>&, cudaStream_t);

}  // namespace assay::fast
