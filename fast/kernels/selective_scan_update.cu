#include <type_traits>

#include "fast/kernels/async_rows.cuh"
#include "fast/kernels/channel_tile.cuh"
#include "fast/kernels/decay.cuh"
#include "fast/kernels/launch.cuh"
#include "fast/kernels/math.hpp"
#include "fast/kernels/reduce.cuh"
#include "fast/kernels/selective_scan.hpp"
#include "fast/kernels/selective_scan_require.hpp"
#include "fast/kernels/storage.cuh"

namespace assay::fast {
namespace {

constexpr int kUpdateThreads = 128;
constexpr int64_t kUpdateBlocks = 1320;  // 132 SMs x 10: one wave

// kLanes neighbouring lanes share a channel and own kOwn states of it, in up to kRows rows.
template <int kLanesValue, int kOwnValue, int kRowsValue>
struct UpdateLayout {
  static constexpr int kLanes = kLanesValue;
  static constexpr int kOwn = kOwnValue;
  static constexpr int kRows = kRowsValue;
  static constexpr int kStates = kLanes * kOwn;
  static constexpr int kChannels = kUpdateThreads / kLanes;
};

template <typename Function>
void with_update_layout(int64_t states, Function&& function) {
  if (states <= 4) return function(UpdateLayout<1, 4, 8>{});
  if (states <= 8) return function(UpdateLayout<2, 4, 8>{});
  if (states <= 16) return function(UpdateLayout<4, 4, 8>{});
  if (states <= 32) return function(UpdateLayout<8, 4, 8>{});
  if (states <= 64) return function(UpdateLayout<16, 4, 8>{});
  if (states <= 128) return function(UpdateLayout<32, 4, 8>{});
  return function(UpdateLayout<32, 8, 4>{});
}

// A block walks `rows` rows of its channels. All their states are on the way before the first is needed.
template <typename T, typename L>
__global__ void __launch_bounds__(kUpdateThreads, L::kOwn == 4 ? 10 : 4)
    selective_scan_update_kernel(SelectiveScanUpdateParams<T> p, int rows, bool is_packed) {
  alignas(32) __shared__ float states[L::kRows][kUpdateThreads][L::kOwn];
  alignas(32) __shared__ float b[L::kRows][L::kStates];
  alignas(32) __shared__ float c[L::kRows][L::kStates];
  __shared__ float x[L::kRows][L::kChannels];
  __shared__ float d[L::kRows][L::kChannels];
  constexpr int kTurn = L::kLanes < L::kRows ? L::kLanes : L::kRows;  // rows whose outputs the lanes share out

  const int thread = static_cast<int>(threadIdx.x);
  const int lane = thread % L::kLanes;
  const int own_channel = thread / L::kLanes;
  const int first_state = lane * L::kOwn;
  const int64_t channel_tiles = p.groups * tiles_of_group<L::kChannels>(p);

  for (int64_t item = blockIdx.x; item < ceil_div(p.batch, rows) * channel_tiles; item += gridDim.x) {
    const int64_t row_tile = quotient(item, channel_tiles);
    const ChannelTile channels = channel_tile<L::kChannels>(p, item - row_tile * channel_tiles);
    const int64_t first_row = row_tile * rows;
    const int count = static_cast<int>(min(static_cast<int64_t>(rows), p.batch - first_row));
    const int64_t channel = channels.first + own_channel;
    const bool has_channel = own_channel < channels.count;
    const bool is_held = has_channel && first_state < p.states;
    const int own_states = is_held ? static_cast<int>(min(int64_t{L::kOwn}, p.states - first_state)) : 0;

    const auto copy = [&](float(&to)[L::kRows][L::kStates], const T* from, int64_t stride, int64_t group_stride) {
      AsyncRows<T, kUpdateThreads, L::kRows, L::kStates> source(
          from + first_row * stride + channels.group * group_stride, stride, p.states, thread);
      if (p.states < L::kStates) source.clear(to);
      source.copy(to, count, is_packed);
    };
    copy(b, p.b, p.b_stride, p.b_group_stride);
    copy(c, p.c, p.c_stride, p.c_group_stride);
    commit_copies();
    float* state = p.state + (first_row * p.channels + channel) * p.states + first_state;
    const int64_t row_size = p.channels * p.states;
#pragma unroll
    for (int r = 0; r < L::kRows; ++r) {
      if (r < count && is_held) {
#pragma unroll
        for (int k = 0; k < L::kOwn; k += kChunk) {
          const float* from = state + r * row_size + k;
          if (is_packed && own_states >= k + kChunk) {
            copy_packed(&states[r][thread][k], from);
          } else {
            copy_single(&states[r][thread][k], from, own_states - k);
          }
        }
      }
      commit_copies();
    }

    float a[L::kOwn];
#pragma unroll
    for (int k = 0; k < L::kOwn; ++k) {
      a[k] = k < own_states ? p.a[channel * p.states + first_state + k] : 0.0f;
    }
    float z[L::kRows / kTurn] = {};
#pragma unroll
    for (int turn = 0; turn < L::kRows / kTurn; ++turn) {
      const int r = turn * kTurn + lane;
      if (p.z != nullptr && lane < kTurn && r < count && has_channel) {
        z[turn] = to_float(p.z[(first_row + r) * p.z_stride + channel]);
      }
    }
    for (int i = thread; i < count * L::kChannels; i += kUpdateThreads) {
      const int r = i / L::kChannels;
      const int at = i % L::kChannels;
      if (at >= channels.count) continue;
      const int64_t row = first_row + r;
      float step = to_float(p.dt[row * p.dt_stride + channels.first + at]);
      x[r][at] = to_float(p.x[row * p.x_stride + channels.first + at]);
      if (p.dt_bias != nullptr) step = softplus(step + to_float(p.dt_bias[channels.first + at]));
      if (p.dt_out != nullptr) p.dt_out[row * p.channels + channels.first + at] = from_float<T>(step);
      d[r][at] = step;
    }
    const float skip = has_channel ? p.skip[channel] : 0.0f;
#pragma unroll
    for (int k = 0; k < L::kOwn; ++k) a[k] = in_powers_of_two(a[k]);
    wait_for_copies_but<L::kRows>();
    __syncthreads();

    float sum = 0;
    const auto walk = [&](auto index) {
      constexpr int r = decltype(index)::value;
      wait_for_copies_but<L::kRows - 1 - r>();
      if (r >= count) return;
      float y = 0;
      if (is_held) {
        const float step = d[r][own_channel];
        const float dx = step * x[r][own_channel];
        float h[L::kOwn], b_own[L::kOwn], c_own[L::kOwn];
        load_pack<L::kOwn>(states[r][thread], h);
        load_pack<L::kOwn>(&b[r][first_state], b_own);
        load_pack<L::kOwn>(&c[r][first_state], c_own);
        float powers[L::kOwn], decay[L::kOwn];
#pragma unroll
        for (int k = 0; k < L::kOwn; ++k) powers[k] = step * a[k];
        decays_of(powers, decay);
#pragma unroll
        for (int k = 0; k < L::kOwn; ++k) {
          h[k] = fmaf(decay[k], h[k], dx * b_own[k]);
          y = fmaf(h[k], c_own[k], y);
        }
        float* to = state + r * row_size;
        if (is_packed && own_states == L::kOwn) {
#pragma unroll
          for (int k = 0; k < L::kOwn; k += kChunk) {
            *reinterpret_cast<float4*>(to + k) = make_float4(h[k], h[k + 1], h[k + 2], h[k + 3]);
          }
        } else {
#pragma unroll
          for (int k = 0; k < L::kOwn; ++k) {
            if (k < own_states) to[k] = h[k];
          }
        }
      }
      y = sum_lanes<L::kLanes>(y);
      if (lane == r % kTurn) sum = y;
      if (r % kTurn == kTurn - 1 || r == count - 1) {
        const int mine = r / kTurn * kTurn + lane;
        if (lane < kTurn && mine < count && has_channel) {
          const int64_t y_at = (first_row + mine) * p.channels + channel;
          float u = fmaf(skip, x[mine][own_channel], sum);
          if (p.ungated != nullptr) p.ungated[y_at] = from_float<T>(u);
          if (p.z != nullptr) u *= silu(z[r / kTurn]);
          p.y[y_at] = from_float<T>(u);
        }
      }
    };
    walk(std::integral_constant<int, 0>{});
    walk(std::integral_constant<int, 1>{});
    walk(std::integral_constant<int, 2>{});
    walk(std::integral_constant<int, 3>{});
    if constexpr (L::kRows == 8) {
      walk(std::integral_constant<int, 4>{});
      walk(std::integral_constant<int, 5>{});
      walk(std::integral_constant<int, 6>{});
      walk(std::integral_constant<int, 7>{});
    }
    __syncthreads();  // the rows have been read
  }
}

}  // namespace

template <typename T>
void selective_scan_update(const SelectiveScanUpdateParams<T>& p, cudaStream_t stream) {
  constexpr const char* kName = "selective_scan_update";
  require_scan_operands(kName, p);
  require_pointer(kName, "state", p.state);
  const bool is_packed =
      is_packable<kChunk, T>({p.b, p.c}, {p.b_stride, p.b_group_stride, p.c_stride, p.c_group_stride}) &&
      is_packable<kChunk, float>({p.a, p.state}, {p.states});
  with_update_layout(p.states, [&](auto layout) {
    using L = decltype(layout);
    const int64_t tiles = p.groups * tiles_of_group<L::kChannels>(p);
    const int64_t rows = std::max<int64_t>(1, std::min<int64_t>(L::kRows, ceil_div(p.batch * tiles, kUpdateBlocks)));
    launch(kName, selective_scan_update_kernel<T, L>, ceil_div(p.batch, rows) * tiles, kUpdateThreads, stream, p,
           static_cast<int>(rows), is_packed);
  });
}

template void selective_scan_update<float>(const SelectiveScanUpdateParams<float>&, cudaStream_t);

}  // namespace assay::fast
