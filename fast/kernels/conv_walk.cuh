// conv_walk: the depthwise causal convolution that causal_conv1d and short_conv share. They differ in how an input
// comes about and in what becomes of a sum.
//
// Params has weight [C, K], bias, initial_state and final_state [B, C, K], batch, length and channels as
// causal_conv1d.hpp says.
#pragma once

#include <algorithm>
#include <cstdint>

#include "fast/kernels/launch.cuh"
#include "fast/kernels/storage.cuh"

namespace assay::fast {

inline constexpr int kConvThreads = 128;
inline constexpr int kConvSteps = 8;  // time steps whose loads are in flight together

template <typename T, int kTaps, int kWidth>
struct ConvTaps {
  float weight[kTaps][kWidth];
  float bias[kWidth];

  __device__ ConvTaps(const T* weights, const T* biases, int64_t channel) {
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      bias[i] = biases != nullptr ? to_float(biases[channel + i]) : 0.0f;
#pragma unroll
      for (int j = 0; j < kTaps; ++j) weight[j][i] = to_float(weights[(channel + i) * kTaps + j]);
    }
  }
};

// A thread owns one pack of channels of one row over a tile of `groups * kConvSteps` steps. Packs are the fastest
// index, so that a warp reads neighbouring channels. input(b, t, channel, value) reads inputs at t >= 0; output(b, t,
// channel, sum) takes bias and taps, summed oldest first.
template <typename T, int kTaps, int kWidth, typename Params, typename Input, typename Output>
__device__ inline void conv_walk(const Params& p, int64_t groups, Input input, Output output) {
  const int64_t packs = p.channels / kWidth;
  const int64_t tile_steps = groups * kConvSteps;
  const int64_t tiles = ceil_div(p.length, tile_steps);
  const int64_t step = static_cast<int64_t>(gridDim.x) * kConvThreads;
  for (int64_t item = static_cast<int64_t>(blockIdx.x) * kConvThreads + threadIdx.x; item < p.batch * tiles * packs;
       item += step) {
    const int64_t row_tile = item / packs;
    const int64_t channel = (item - row_tile * packs) * kWidth;
    const int64_t b = row_tile / tiles;
    const int64_t tile = row_tile - b * tiles;
    const ConvTaps<T, kTaps, kWidth> taps(p.weight, p.bias, channel);
    const int64_t state_at = (b * p.channels + channel) * kTaps;

    // Input number t of this row; t < 0 is the state's column kTaps + t.
    auto at = [&](int64_t t, float(&value)[kWidth]) {
      if (t >= 0) return input(b, t, channel, value);
#pragma unroll
      for (int i = 0; i < kWidth; ++i) {
        value[i] = p.initial_state != nullptr ? to_float(p.initial_state[state_at + i * kTaps + kTaps + t]) : 0.0f;
      }
    };

    int64_t t = tile * tile_steps;
    const int64_t end = min(t + tile_steps, p.length);
    float window[kTaps - 1 + kConvSteps][kWidth];
#pragma unroll
    for (int j = 0; j < kTaps - 1; ++j) at(t - (kTaps - 1) + j, window[j]);
    for (; t < end; t += kConvSteps) {
#pragma unroll
      for (int s = 0; s < kConvSteps; ++s) {
        if (t + s < end) input(b, t + s, channel, window[kTaps - 1 + s]);
      }
#pragma unroll
      for (int s = 0; s < kConvSteps; ++s) {
        if (t + s >= end) break;
        float sum[kWidth];
#pragma unroll
        for (int i = 0; i < kWidth; ++i) {
          sum[i] = taps.bias[i];
#pragma unroll
          for (int j = 0; j < kTaps; ++j) sum[i] = fmaf(taps.weight[j][i], window[s + j][i], sum[i]);
        }
        output(b, t + s, channel, sum);
      }
#pragma unroll
      for (int j = 0; j < kTaps - 1; ++j) {
#pragma unroll
        for (int i = 0; i < kWidth; ++i) window[j][i] = window[kConvSteps + j][i];
      }
    }

    // Only tile 0 reads the initial state, and it has read it: the same memory may now be written.
    if (tile == 0 && p.final_state != nullptr) {
      float last[kTaps][kWidth];
#pragma unroll
      for (int j = 0; j < kTaps; ++j) {
        // Column j is input L - K + j; before the first input that is the state moved up by L columns.
        at(p.length - kTaps + j, last[j]);
      }
#pragma unroll
      for (int i = 0; i < kWidth; ++i) {
#pragma unroll
        for (int j = 0; j < kTaps; ++j) p.final_state[state_at + i * kTaps + j] = from_float<T>(last[j][i]);
      }
    }
  }
}

// Groups of a tile and threads in all. Longer tiles read less of the window twice; shorter ones fill the device.
struct ConvTiling {
  int64_t groups = 1;
  int64_t blocks = 0;
};

inline ConvTiling conv_tiling(int64_t batch, int64_t length, int64_t packs) {
  constexpr int64_t kMaxGroups = 8;    // groups of steps a thread walks, its window staying in registers
  constexpr int64_t kEnough = 270336;  // threads that fill the device: 132 SMs x 2048
  ConvTiling tiling;
  const auto items = [&](int64_t groups) { return batch * packs * ceil_div(length, groups * kConvSteps); };
  while (tiling.groups < kMaxGroups && items(tiling.groups * 2) >= kEnough) tiling.groups *= 2;
  tiling.blocks = ceil_div(items(tiling.groups), kConvThreads);
  return tiling;
}

}  // namespace assay::fast
