// short_conv: the gated short convolution of LFM2, between its two projections.
//
//     u[b, t, c] = gate_in[b, t, c] * x[b, t, c],                                0 where mask[b, t] is 0
//     v[b, t, c] = bias[c] + sum_{j < K} weight[c, j] * u[b, t - K + 1 + j, c],  0 where mask[b, t] is 0
//     y[b, t, c] = gate_out[b, t, c] * v[b, t, c]
//
// u at negative times is the initial state, or 0.
//
// in   gate_in, gate_out, x  [B, L, C]  row (b, t) of each starts at (b * L + t) * stride: in_proj's output [B, L, 3 C]
//                                       holds them in this order
//      weight                [C, K]     the checkpoint's [C, 1, K]
//      bias                  [C]        null: none
//      initial_state         [B, C, K]  the last K of u, oldest first; null: zeros
//      mask                  uint8 [B, L], row b starts at b * mask_stride; null: none. Zeroes u as well as v: with a
//                            bias of in_proj, a padded column's u is not zero by itself
// out  y                     [B, L, C]  dense; may not alias an input
//      final_state           [B, C, K]  the last K of u, the current one included; zeros before the first; null: not
//                                       written; may alias initial_state
//      conv_out              [B, L, C]  v, dense, for probes; null: not written
//
// requires  1 <= K <= 4; stride >= C; mask_stride >= L where mask is given
// cost      (4 B L C + C K + 2 B C K) * sizeof(T) bytes
// numerics  float32, u not rounded, taps summed oldest first starting from bias
// source    models.md B5
// twin      reference/ops/causal_conv1d.hpp between two products, as reference/blocks/short_conv.hpp has it
//
// short_conv_update: the same for L = 1 on a stored state, which is shifted in place; gate_in, gate_out, x [B, C] with
// row b at b * stride, mask [B] at b * mask_stride, y and conv_out dense.
// cost    (4 B C + C K + 2 B C K) * sizeof(T) bytes
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <string_view>

#include "fast/kernels/kernel_id.hpp"

namespace assay::fast {

template <typename T>
struct ShortConvParams {
  const T* gate_in = nullptr;
  const T* gate_out = nullptr;
  const T* x = nullptr;
  int64_t stride = 0;
  const T* weight = nullptr;
  const T* bias = nullptr;
  const T* initial_state = nullptr;
  const uint8_t* mask = nullptr;
  int64_t mask_stride = 0;
  T* y = nullptr;
  T* final_state = nullptr;
  T* conv_out = nullptr;
  int64_t batch = 0;
  int64_t length = 0;
  int64_t channels = 0;
  int64_t taps = 0;  // K
};

template <typename T>
void short_conv(const ShortConvParams<T>& p, cudaStream_t stream);

template <typename T>
constexpr std::string_view short_conv_id(const ShortConvParams<T>&) {
  return kernel_id<"short_conv_sequence", T>;
}

template <typename T>
struct ShortConvUpdateParams {
  const T* gate_in = nullptr;
  const T* gate_out = nullptr;
  const T* x = nullptr;
  int64_t stride = 0;
  const T* weight = nullptr;
  const T* bias = nullptr;
  T* state = nullptr;  // [B, C, K], read and written
  const uint8_t* mask = nullptr;
  int64_t mask_stride = 0;
  T* y = nullptr;
  T* conv_out = nullptr;
  int64_t batch = 0;
  int64_t channels = 0;
  int64_t taps = 0;  // K
};

template <typename T>
void short_conv_update(const ShortConvUpdateParams<T>& p, cudaStream_t stream);

template <typename T>
constexpr std::string_view short_conv_update_id(const ShortConvUpdateParams<T>&) {
  return kernel_id<"short_conv_update", T>;
}

}  // namespace assay::fast
