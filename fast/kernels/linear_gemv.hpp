// linear_gemv: y = x weight^T + bias for the few rows of decoding; with accumulate, y = y + x weight^T + bias.
//
// in   x       [T, in]    row t at t * x_stride
//      weight  [out, in]  dense
//      bias    [out]      null: none
// out  y       [T, out]   row t at t * y_stride; may not alias x
//
// requires  1 <= T <= kGemvRows; x_stride >= in; y_stride >= out
// cost      (in out + T (in + out)) sizeof(T) bytes: the weight is read once
// numerics  float32: a lane's share of a row in ascending order, then a butterfly over the warp, then the warps that
//           share the row in ascending order; how many share it depends on `in` and on whether rows are read by 16
//           bytes, so the sum of a row does not depend on T
// source    models.md 1.2
// twin      reference/ops/linear.hpp
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <string_view>

#include "fast/kernels/kernel_id.hpp"

namespace assay::fast {

inline constexpr int64_t kGemvRows = 8;

template <typename T>
struct LinearGemvParams {
  const T* x = nullptr;
  int64_t x_stride = 0;
  const T* weight = nullptr;
  const T* bias = nullptr;
  T* y = nullptr;
  int64_t y_stride = 0;
  int64_t rows = 0;  // T
  int64_t in = 0;
  int64_t out = 0;
  bool accumulate = false;
};

template <typename T>
void linear_gemv(const LinearGemvParams<T>& p, cudaStream_t stream);

template <typename T>
constexpr std::string_view linear_gemv_id(const LinearGemvParams<T>&) {
  return kernel_id<"linear_gemv", T>;
}

}  // namespace assay::fast
