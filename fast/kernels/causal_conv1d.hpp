// causal_conv1d: depthwise causal convolution over time, channel-last.
//
//     y[b, t, c] = phi(bias[c] + sum_{j < K} weight[c, j] * x[b, t - K + 1 + j, c]),  0 where mask[b, t] is 0
//
// phi is silu or nothing. x at negative times is the initial state, or 0.
//
// in   x              [B, L, C]  row (b, t) starts at (b * L + t) * x_stride (a slice of in_proj's output)
//      weight         [C, K]     the checkpoint's [C, 1, K]
//      bias           [C]        null: none
//      initial_state  [B, C, K]  the last K inputs, oldest first; null: zeros
//      mask           uint8 [B, L], row b starts at b * mask_stride; null: none. Zeroes outputs only: the inputs were
//                     masked before in_proj (mask_rows)
// out  y              [B, L, C]  dense; may not alias x
//      final_state    [B, C, K]  the last K inputs, the current one included; zeros before the first input; null: not
//                                written; may alias initial_state
//
// requires  1 <= K <= 4; x_stride >= C; mask_stride >= L where mask is given
// cost      (2 B L C + C K + 2 B C K) * sizeof(T) bytes
// numerics  float32, taps summed oldest first starting from bias; silu by the hardware's ex2 and reciprocal, whose
//           relative error grows with |x|: 4 ulp around 2, and far below the ulp of the largest output where the
//           result is small. Tiles of time do not show in the results, and an update repeats the bits of a sequence
// source    models.md B2
// twin      reference/ops/causal_conv1d.hpp
//
// causal_conv1d_update: the same for L = 1 on a stored state, which is shifted in place.
//
//     state[b, c] <- [state[b, c, 1:], x[b, c]];  y[b, c] = phi(bias[c] + sum_j weight[c, j] * state[b, c, j])
//
// in      x      [B, C]     row b starts at b * x_stride
// in/out  state  [B, C, K]
// out     y      [B, C]     dense
// cost    (2 B C K + 2 B C + C K) * sizeof(T) bytes
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <string_view>

#include "fast/kernels/kernel_id.hpp"

namespace assay::fast {

template <typename T>
struct CausalConv1dParams {
  const T* x = nullptr;
  int64_t x_stride = 0;
  const T* weight = nullptr;
  const T* bias = nullptr;
  const T* initial_state = nullptr;
  const uint8_t* mask = nullptr;
  int64_t mask_stride = 0;
  T* y = nullptr;
  T* final_state = nullptr;
  int64_t batch = 0;
  int64_t length = 0;
  int64_t channels = 0;
  int64_t taps = 0;  // K
  bool has_silu = true;
};

template <typename T>
void causal_conv1d(const CausalConv1dParams<T>& p, cudaStream_t stream);

template <typename T>
constexpr std::string_view causal_conv1d_id(const CausalConv1dParams<T>&) {
  return kernel_id<"causal_conv1d_sequence", T>;
}

template <typename T>
struct CausalConv1dUpdateParams {
  const T* x = nullptr;
  int64_t x_stride = 0;
  const T* weight = nullptr;
  const T* bias = nullptr;
  T* state = nullptr;
  T* y = nullptr;
  int64_t batch = 0;
  int64_t channels = 0;
  int64_t taps = 0;  // K
  bool has_silu = true;
};

template <typename T>
void causal_conv1d_update(const CausalConv1dUpdateParams<T>& p, cudaStream_t stream);

template <typename T>
constexpr std::string_view causal_conv1d_update_id(const CausalConv1dUpdateParams<T>&) {
  return kernel_id<"causal_conv1d_update", T>;
}

}  // namespace assay::fast
