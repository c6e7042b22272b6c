// Elementwise kernels over [T, W] rows: row t of an operand starts at t times its stride; outputs are dense.
//
//     mask_rows      y[b, t] = x[b, t] where mask[b, t] is not 0, else 0      x, y [B, L, W] dense; y may alias x
//     residual_add   y = x + residual                                        all [count] dense; y may alias either
//     silu_gate      y = x * silu(z)                                         x [T, W] dense, z strided; y may alias x
//
// requires  strides >= width; mask_stride >= length
// cost      mask_rows (1 + share of kept rows) B L W, residual_add 3 count, silu_gate 3 T W, times sizeof(T) bytes
// numerics  float32; mask_rows selects, so that NaN at a masked place does not pass
// source    models.md 3.4 and B3 step 10
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <string_view>

#include "fast/kernels/kernel_id.hpp"

namespace assay::fast {

template <typename T>
struct MaskRowsParams {
  const T* x = nullptr;
  T* y = nullptr;
  const uint8_t* mask = nullptr;  // [B, L], row b starts at b * mask_stride
  int64_t mask_stride = 0;
  int64_t batch = 0;
  int64_t length = 0;
  int64_t width = 0;
};
template <typename T>
void mask_rows(const MaskRowsParams<T>& p, cudaStream_t stream);
template <typename T>
constexpr std::string_view mask_rows_id(const MaskRowsParams<T>&) {
  return kernel_id<"mask_rows", T>;
}

template <typename T>
struct ResidualAddParams {
  const T* x = nullptr;
  const T* residual = nullptr;
  T* y = nullptr;
  int64_t count = 0;
};
template <typename T>
void residual_add(const ResidualAddParams<T>& p, cudaStream_t stream);
template <typename T>
constexpr std::string_view residual_add_id(const ResidualAddParams<T>&) {
  return kernel_id<"residual_add", T>;
}

template <typename T>
struct SiluGateParams {
  const T* x = nullptr;
  const T* z = nullptr;
  int64_t z_stride = 0;
  T* y = nullptr;
  int64_t rows = 0;
  int64_t width = 0;
};
template <typename T>
void silu_gate(const SiluGateParams<T>& p, cudaStream_t stream);
template <typename T>
constexpr std::string_view silu_gate_id(const SiluGateParams<T>&) {
  return kernel_id<"silu_gate", T>;
}

}  // namespace assay::fast
