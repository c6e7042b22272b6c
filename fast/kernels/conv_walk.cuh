// conv_walk: the depthwise causal convolution that causal_conv1d and short_conv share. They differ in how an input
// comes about and in what becomes of a sum. conv_update: the same for one time step on a stored state.
//
// Params has weight [C, K], bias, initial_state and final_state or state [B, C, K], mask, batch, length and channels as
// causal_conv1d.hpp says.
#pragma once

#include <cstdint>

#include "fast/kernels/async_copy.cuh"
#include "fast/kernels/launch.cuh"
#include "fast/kernels/quotient.cuh"
#include "fast/kernels/storage.cuh"

namespace assay::fast {

inline constexpr int kConvThreads = 128;
inline constexpr int kConvStages = 8;  // time steps of a thread that are in use or on their way

// run is called with the kernel template's argument: run.template operator()<taps>().
template <typename Run>
void with_taps(int64_t taps, Run run) {
  switch (taps) {
    case 1:
      return run.template operator()<1>();
    case 2:
      return run.template operator()<2>();
    case 3:
      return run.template operator()<3>();
    default:
      return run.template operator()<4>();
  }
}

// kCount neighbours, by one access where kIsPacked.
template <bool kIsPacked, int kCount, typename T>
__device__ inline void load_run(const T* from, float (&to)[kCount]) {
  if constexpr (kIsPacked) {
    load_pack<kCount>(from, to);
  } else {
#pragma unroll
    for (int i = 0; i < kCount; ++i) to[i] = to_float(from[i]);
  }
}
template <bool kIsPacked, int kCount, typename T>
__device__ inline void store_run(T* to, const float (&from)[kCount]) {
  if constexpr (kIsPacked) {
    store_pack<kCount>(to, from);
  } else {
#pragma unroll
    for (int i = 0; i < kCount; ++i) to[i] = from_float<T>(from[i]);
  }
}

// Of kWidth channels, which are read by packs.
template <typename T, int kTaps, int kWidth>
struct ConvTaps {
  float weight[kTaps][kWidth];
  float bias[kWidth];

  __device__ ConvTaps(const T* weights, const T* biases, int64_t channel) {
#pragma unroll
    for (int k = 0; k < kTaps; ++k) {
      float run[kWidth];
      load_pack<kWidth>(weights + channel * kTaps + k * kWidth, run);
#pragma unroll
      for (int i = 0; i < kWidth; ++i) weight[(k * kWidth + i) % kTaps][(k * kWidth + i) / kTaps] = run[i];
    }
#pragma unroll
    for (int i = 0; i < kWidth; ++i) bias[i] = 0;
    if (biases != nullptr) load_pack<kWidth>(biases + channel, bias);
  }
};

// In a group of the thread's asynchronous copies, where the size of an access allows that.
template <typename Access>
__device__ inline void copy_ahead(Access* to, const Access* from) {
  const unsigned shared = static_cast<unsigned>(__cvta_generic_to_shared(to));
  if constexpr (sizeof(Access) == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared), "l"(from) : "memory");
  } else if constexpr (sizeof(Access) >= 4) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(shared), "l"(from), "n"(sizeof(Access)) : "memory");
  } else {
    *to = *from;
  }
}

// A thread owns one pack of channels of one row over kTile time steps. Packs are the fastest index, so that a warp
// reads neighbouring channels. What it reads is on its way through a ring in shared memory, of which each thread sees
// its own only: what is in flight needs no registers. input(read, is_real, value) makes an input of what was read from
// `inputs`; output(out, read, is_real, sum) takes bias and taps, summed oldest first.
template <int kTaps, int kWidth, int kTile, typename T, int kInputs, typename Params, typename Input, typename Output>
__device__ inline void conv_walk(const Params& p, const T* const (&inputs)[kInputs], int64_t stride, Input input,
                                 Output output) {
  constexpr int kStages = kConvStages;
  using Access = Pack<T, kWidth>;
  __shared__ Access ring[kStages][kInputs][kConvThreads];
  const int64_t packs = p.channels / kWidth;
  const int64_t tiles = ceil_div(p.length, kTile);
  const int64_t step = static_cast<int64_t>(gridDim.x) * kConvThreads;
  for (int64_t item = static_cast<int64_t>(blockIdx.x) * kConvThreads + threadIdx.x; item < p.batch * tiles * packs;
       item += step) {
    const int64_t row_tile = quotient(item, packs);
    const int64_t channel = (item - row_tile * packs) * kWidth;
    const int64_t b = quotient(row_tile, tiles);
    const int64_t first = (row_tile - b * tiles) * kTile;
    const int64_t state_at = (b * p.channels + channel) * kTaps;
    const uint8_t* mask = p.mask == nullptr ? nullptr : p.mask + b * p.mask_stride + first;

    // Steps are counted from `first`. Those before 0 are the window's, which of the first tile are the state's: column
    // kTaps + t is input t.
    const int end = static_cast<int>(min(int64_t{kTile}, p.length - first));
    int64_t in = (b * p.length + first + (first == 0 ? 0 : 1 - kTaps)) * stride + channel;
    int64_t out = (b * p.length + first) * p.channels + channel;
    const auto ask = [&](int t, int stage) {
      if (t < end && (t >= 0 || first != 0)) {
#pragma unroll
        for (int k = 0; k < kInputs; ++k)
          copy_ahead(&ring[stage][k][threadIdx.x], reinterpret_cast<const Access*>(inputs[k] + in));
        in += stride;
      }
      commit_copies();
    };
    const auto arrived = [&](int stage, float(&read)[kInputs][kWidth]) {
#pragma unroll
      for (int k = 0; k < kInputs; ++k) load_pack<kWidth>(ring[stage][k][threadIdx.x].at, read[k]);
    };
    const auto stored = [&](int column, float(&value)[kWidth]) {
#pragma unroll
      for (int i = 0; i < kWidth; ++i)
        value[i] = p.initial_state != nullptr ? to_float(p.initial_state[state_at + i * kTaps + column]) : 0.0f;
    };
#pragma unroll
    for (int s = 0; s < kStages - 1; ++s) ask(1 - kTaps + s, s);
    const ConvTaps<T, kTaps, kWidth> taps(p.weight, p.bias, channel);
    float window[kTaps][kWidth];
    wait_for_copies_but<kStages - kTaps>();
#pragma unroll
    for (int j = 1; j < kTaps; ++j) {
      if (first == 0) {
        stored(j, window[j]);
      } else {
        float read[kInputs][kWidth];
        arrived(j - 1, read);
        input(read, mask == nullptr || mask[j - kTaps] != 0, window[j]);
      }
    }
#pragma unroll
    for (int j = 1; j < kTaps; ++j) ask(kStages - 1 - kTaps + j, (kStages - 2 + j) % kStages);
    for (int t = 0; t < end; t += kStages) {
#pragma unroll
      for (int s = 0; s < kStages; ++s) {
        if (t + s >= end) break;
        constexpr int kBefore = kTaps - 1;
        wait_for_copies_but<kStages - 2>();
        float read[kInputs][kWidth];
        arrived((s + kBefore) % kStages, read);
        ask(t + s + kStages - 1, (s + kBefore + kStages - 1) % kStages);
        const bool is_real = mask == nullptr || mask[t + s] != 0;
#pragma unroll
        for (int j = 0; j < kTaps - 1; ++j) {
#pragma unroll
          for (int i = 0; i < kWidth; ++i) window[j][i] = window[j + 1][i];
        }
        input(read, is_real, window[kTaps - 1]);
        float sum[kWidth];
#pragma unroll
        for (int i = 0; i < kWidth; ++i) {
          sum[i] = taps.bias[i];
#pragma unroll
          for (int j = 0; j < kTaps; ++j) sum[i] = fmaf(taps.weight[j][i], window[j][i], sum[i]);
        }
        output(out, read, is_real, sum);
        out += p.channels;
      }
    }

    // Only the first tile reads the initial state, and it has read it: the same memory may now be written.
    if (first == 0 && p.final_state != nullptr) {
      float last[kTaps][kWidth];
#pragma unroll
      for (int j = 0; j < kTaps; ++j) {
        // Column j is input L - K + j; before the first input that is the state moved up by L columns.
        const int64_t t = p.length - kTaps + j;
        if (t < 0) {
          stored(static_cast<int>(kTaps + t), last[j]);
          continue;
        }
        float read[kInputs][kWidth];
#pragma unroll
        for (int k = 0; k < kInputs; ++k) load_pack<kWidth>(inputs[k] + (b * p.length + t) * stride + channel, read[k]);
        input(read, mask == nullptr || mask[t] != 0, last[j]);
      }
#pragma unroll
      for (int i = 0; i < kWidth; ++i) {
#pragma unroll
        for (int j = 0; j < kTaps; ++j) p.final_state[state_at + i * kTaps + j] = from_float<T>(last[j][i]);
      }
    }
  }
}

inline int64_t conv_blocks(int64_t batch, int64_t length, int64_t packs, int tile) {
  return ceil_div(batch * ceil_div(length, tile) * packs, kConvThreads);
}

// A thread owns one channel of one row. kIsPacked: its weights and its state are read and written by one access.
// input(b, channel) is the newest input; output(item, sum) gets item = b * channels + channel.
template <int kTaps, bool kIsPacked, typename Params, typename Input, typename Output>
__device__ inline void conv_update(const Params& p, Input input, Output output) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * kConvThreads;
  for (int64_t item = static_cast<int64_t>(blockIdx.x) * kConvThreads + threadIdx.x; item < p.batch * p.channels;
       item += step) {
    const int64_t b = quotient(item, p.channels);
    const int64_t channel = item - b * p.channels;
    float window[kTaps], weight[kTaps];
    load_run<kIsPacked>(p.state + item * kTaps, window);
    load_run<kIsPacked>(p.weight + channel * kTaps, weight);
    const float newest = input(b, channel);
    float sum = p.bias != nullptr ? to_float(p.bias[channel]) : 0.0f;
#pragma unroll
    for (int j = 0; j < kTaps; ++j) {
      window[j] = j < kTaps - 1 ? window[j + 1] : newest;
      sum = fmaf(weight[j], window[j], sum);
    }
    store_run<kIsPacked>(p.state + item * kTaps, window);
    output(item, sum);
  }
}

// Whether a channel's weights, and its state, may be one access each.
template <int kTaps>
inline constexpr bool kIsRun = (kTaps & (kTaps - 1)) == 0;
template <int kTaps, typename T>
bool is_run(const T* weight, const T* state) {
  return kIsRun<kTaps> && is_packable<kTaps, T>({weight, state}, {});
}

}  // namespace assay::fast
