// experts: each token through its k chosen experts, and their weighted sum.
//
//     gated  hidden = act(x first[e, :F]^T) * (x first[e, F:]^T)      plain  hidden = act(x first[e]^T)
//     y[t] = sum over slots j ascending of weights[t, j] * (hidden down[e]^T),  e = experts[t, j]
//
// in   x          [T, X]            row t at t * x_stride
//      experts    int32 [T, k]      dense, as router writes it: 0 <= e < E, in any order, may repeat
//      weights    float32 [T, k]    dense
//      first      [E, 2F or F, X]   dense; gated: rows of the gate first
//      down       [E, X, F]         dense
//      workspace  experts_grouped_workspace_bytes(p) or experts_gemv_workspace_bytes(p), 16-byte aligned
// out  y          [T, X]            dense; may not alias x
//
// experts_grouped: (token, slot) pairs are sorted by expert on the device (counting sort, stable), each expert's rows
// gathered into tiles of two matrix products (experts_product.cuh: 64 rows, or 16 where experts have few or tiles would
// be few), and the results summed token by token. experts_gemv: no sorting, for the few rows of decoding; of up to 256
// neighbouring pairs (8 tokens in the second product) those of one expert are found and read its matrices together.
// Neither waits for the host; nothing depends on which experts were chosen but the time.
//
// requires  T k < 2^31; E <= 1024; a tile's share of columns counts in 32 bits: X, F < 2^31
// cost      flops: 2 T k F X (3 or 2); bytes: the matrices of the experts that are used, and 2 T X sizeof(T)
// numerics  float32 sums in a fixed order; the result does not depend on what other tokens chose
// source    models.md B10
// twin      reference/blocks/experts.hpp
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "fast/kernels/activation.hpp"
#include "fast/kernels/kernel_id.hpp"

namespace assay::fast {

template <typename T>
struct ExpertsParams {
  const T* x = nullptr;
  int64_t x_stride = 0;
  const int32_t* experts = nullptr;
  const float* weights = nullptr;
  const T* first = nullptr;
  const T* down = nullptr;
  T* y = nullptr;
  void* workspace = nullptr;
  int64_t tokens = 0;        // T
  int64_t chosen = 0;        // k
  int64_t count = 0;         // E
  int64_t width = 0;         // X
  int64_t hidden_width = 0;  // F
  bool is_gated = true;
  ActivationKind activation = ActivationKind::kSilu;
};

template <typename T>
size_t experts_grouped_workspace_bytes(const ExpertsParams<T>& p);
template <typename T>
void experts_grouped(const ExpertsParams<T>& p, cudaStream_t stream);

template <typename T>
constexpr std::string_view experts_grouped_id(const ExpertsParams<T>&) {
  return kernel_id<"experts_grouped", T>;
}

template <typename T>
size_t experts_gemv_workspace_bytes(const ExpertsParams<T>& p);
template <typename T>
void experts_gemv(const ExpertsParams<T>& p, cudaStream_t stream);

template <typename T>
constexpr std::string_view experts_gemv_id(const ExpertsParams<T>&) {
  return kernel_id<"experts_gemv", T>;
}

// Whether pairs so rarely share an expert that sorting them does not pay.
template <typename T>
constexpr bool prefers_gemv(const ExpertsParams<T>& p) {
  return p.tokens <= 8;
}

}  // namespace assay::fast
