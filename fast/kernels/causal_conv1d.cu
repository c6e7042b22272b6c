#include "fast/kernels/causal_conv1d.hpp"
#include "fast/kernels/launch.cuh"
#include "fast/kernels/math.hpp"
#include "fast/kernels/require.hpp"
#include "fast/kernels/storage.cuh"

namespace assay::fast {
namespace {

constexpr int kThreads = 128;
constexpr int kSteps = 8;            // time steps whose loads are in flight together
constexpr int64_t kMaxGroups = 8;    // groups of kSteps steps a thread walks, its window staying in registers
constexpr int64_t kEnough = 270336;  // threads that fill the device: 132 SMs x 2048

template <typename T, int kTaps, int kWidth>
struct Taps {
  float weight[kTaps][kWidth];
  float bias[kWidth];

  __device__ Taps(const T* weights, const T* biases, int64_t channel) {
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      bias[i] = biases != nullptr ? to_float(biases[channel + i]) : 0.0f;
#pragma unroll
      for (int j = 0; j < kTaps; ++j) weight[j][i] = to_float(weights[(channel + i) * kTaps + j]);
    }
  }
};

// A thread owns one pack of channels of one row over a tile of `groups * kSteps` steps. Packs are the fastest index, so
// that a warp reads neighbouring channels.
template <typename T, int kTaps, int kWidth>
__global__ void causal_conv1d_kernel(CausalConv1dParams<T> p, int64_t groups) {
  const int64_t packs = p.channels / kWidth;
  const int64_t tile_steps = groups * kSteps;
  const int64_t tiles = ceil_div(p.length, tile_steps);
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t item = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; item < p.batch * tiles * packs;
       item += step) {
    const int64_t row_tile = item / packs;
    const int64_t channel = (item - row_tile * packs) * kWidth;
    const int64_t b = row_tile / tiles;
    const int64_t tile = row_tile - b * tiles;
    const Taps<T, kTaps, kWidth> taps(p.weight, p.bias, channel);
    const T* x = p.x + b * p.length * p.x_stride + channel;
    T* y = p.y + b * p.length * p.channels + channel;
    const uint8_t* mask = p.mask != nullptr ? p.mask + b * p.mask_stride : nullptr;
    const int64_t state_at = (b * p.channels + channel) * kTaps;

    // Input number t of this row; t < 0 is the state's column kTaps + t.
    auto input = [&](int64_t t, float(&value)[kWidth]) {
      if (t >= 0) {
        load_pack<kWidth>(x + t * p.x_stride, value);
        return;
      }
#pragma unroll
      for (int i = 0; i < kWidth; ++i) {
        value[i] = p.initial_state != nullptr ? to_float(p.initial_state[state_at + i * kTaps + kTaps + t]) : 0.0f;
      }
    };

    int64_t t = tile * tile_steps;
    const int64_t end = min(t + tile_steps, p.length);
    float window[kTaps - 1 + kSteps][kWidth];
#pragma unroll
    for (int j = 0; j < kTaps - 1; ++j) input(t - (kTaps - 1) + j, window[j]);
    for (; t < end; t += kSteps) {
#pragma unroll
      for (int s = 0; s < kSteps; ++s) {
        if (t + s < end) load_pack<kWidth>(x + (t + s) * p.x_stride, window[kTaps - 1 + s]);
      }
#pragma unroll
      for (int s = 0; s < kSteps; ++s) {
        if (t + s >= end) break;
        float out[kWidth];
        const bool is_real = mask == nullptr || mask[t + s] != 0;
#pragma unroll
        for (int i = 0; i < kWidth; ++i) {
          float sum = taps.bias[i];
#pragma unroll
          for (int j = 0; j < kTaps; ++j) sum = fmaf(taps.weight[j][i], window[s + j][i], sum);
          out[i] = is_real ? (p.has_silu ? silu(sum) : sum) : 0.0f;
        }
        store_pack<kWidth>(y + (t + s) * p.channels, out);
      }
#pragma unroll
      for (int j = 0; j < kTaps - 1; ++j) {
#pragma unroll
        for (int i = 0; i < kWidth; ++i) window[j][i] = window[kSteps + j][i];
      }
    }

    // Only tile 0 reads the initial state, and it has read it: the same memory may now be written.
    if (tile == 0 && p.final_state != nullptr) {
      float last[kTaps][kWidth];
#pragma unroll
      for (int j = 0; j < kTaps; ++j) {
        // Column j is input L - K + j; before the first input that is the state moved up by L columns.
        input(p.length - kTaps + j, last[j]);
      }
#pragma unroll
      for (int i = 0; i < kWidth; ++i) {
#pragma unroll
        for (int j = 0; j < kTaps; ++j) p.final_state[state_at + i * kTaps + j] = from_float<T>(last[j][i]);
      }
    }
  }
}

template <typename T, int kTaps>
__global__ void causal_conv1d_update_kernel(CausalConv1dUpdateParams<T> p) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t item = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; item < p.batch * p.channels;
       item += step) {
    const int64_t b = item / p.channels;
    const int64_t channel = item - b * p.channels;
    const Taps<T, kTaps, 1> taps(p.weight, p.bias, channel);
    T* state = p.state + item * kTaps;
    float window[kTaps];
#pragma unroll
    for (int j = 0; j < kTaps - 1; ++j) window[j] = to_float(state[j + 1]);
    window[kTaps - 1] = to_float(p.x[b * p.x_stride + channel]);
    float sum = taps.bias[0];
#pragma unroll
    for (int j = 0; j < kTaps; ++j) {
      sum = fmaf(taps.weight[j][0], window[j], sum);
      state[j] = from_float<T>(window[j]);
    }
    p.y[item] = from_float<T>(p.has_silu ? silu(sum) : sum);
  }
}

template <typename T, int kTaps>
void start(const CausalConv1dParams<T>& p, cudaStream_t stream) {
  constexpr int kWidth = kPackWidth<T>;
  const bool is_packed = is_packable<kWidth, T>({p.x, p.y}, {p.channels, p.x_stride});
  const int64_t packs = is_packed ? p.channels / kWidth : p.channels;
  // Longer tiles read less of the window twice; shorter ones fill the device.
  int64_t groups = 1;
  while (groups < kMaxGroups && p.batch * packs * ceil_div(p.length, groups * 2 * kSteps) >= kEnough) groups *= 2;
  const int64_t items = p.batch * packs * ceil_div(p.length, groups * kSteps);
  launch("causal_conv1d", is_packed ? causal_conv1d_kernel<T, kTaps, kWidth> : causal_conv1d_kernel<T, kTaps, 1>,
         ceil_div(items, kThreads), kThreads, stream, p, groups);
}

}  // namespace

template <typename T>
void causal_conv1d(const CausalConv1dParams<T>& p, cudaStream_t stream) {
  constexpr const char* kName = "causal_conv1d";
  require_pointer(kName, "x", p.x);
  require_pointer(kName, "weight", p.weight);
  require_pointer(kName, "y", p.y);
  require_range(kName, "batch", p.batch, 1, kAnySize);
  require_range(kName, "length", p.length, 1, kAnySize);
  require_range(kName, "channels", p.channels, 1, kAnySize);
  require_range(kName, "taps", p.taps, 1, 4);
  require_stride(kName, "x_stride", p.x_stride, p.channels);
  if (p.mask != nullptr) require_stride(kName, "mask_stride", p.mask_stride, p.length);
  switch (p.taps) {
    case 1:
      return start<T, 1>(p, stream);
    case 2:
      return start<T, 2>(p, stream);
    case 3:
      return start<T, 3>(p, stream);
    default:
      return start<T, 4>(p, stream);
  }
}

template <typename T>
void causal_conv1d_update(const CausalConv1dUpdateParams<T>& p, cudaStream_t stream) {
  constexpr const char* kName = "causal_conv1d_update";
  require_pointer(kName, "x", p.x);
  require_pointer(kName, "weight", p.weight);
  require_pointer(kName, "state", p.state);
  require_pointer(kName, "y", p.y);
  require_range(kName, "batch", p.batch, 1, kAnySize);
  require_range(kName, "channels", p.channels, 1, kAnySize);
  require_range(kName, "taps", p.taps, 1, 4);
  require_stride(kName, "x_stride", p.x_stride, p.channels);
  constexpr void (*kKernels[])(CausalConv1dUpdateParams<T>) = {
      causal_conv1d_update_kernel<T, 1>, causal_conv1d_update_kernel<T, 2>, causal_conv1d_update_kernel<T, 3>,
      causal_conv1d_update_kernel<T, 4>};
  launch(kName, kKernels[p.taps - 1], ceil_div(p.batch * p.channels, kThreads), kThreads, stream, p);
}

template void causal_conv1d<float>(const CausalConv1dParams<float>&, cudaStream_t);
template void causal_conv1d_update<float>(const CausalConv1dUpdateParams<float>&, cudaStream_t);

}  // namespace assay::fast
