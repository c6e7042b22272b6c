// head_rms_norm, l2norm: norms of each head's slice of a row, in place or not.
//
//     head_rms_norm   y[t, h, i] = weight[i] * x[t, h, i] / sqrt(mean_i(x[t, h, i]^2) + epsilon)
//                     weight[i] is 1 + weight[i] if is_zero_centred, 1 where weight is null
//     l2norm          y[t, h, i] = scale * x[t, h, i] / sqrt(sum_i(x[t, h, i]^2) + epsilon)
//
// in   x       [T, heads, D]  row t starts at t * x_stride (the q or k slice of a projection; heads = 1: dt, B or C of
//                             x_proj's output)
//      weight  [D]            one for every head; null: none
// out  y       [T, heads, D]  row t starts at t * y_stride; may alias x if the strides are equal
//
// requires  rows = T, heads, width = D >= 1; x_stride, y_stride >= heads * width
// cost      (2 T heads D + D) * sizeof(T) bytes; a slice of more than 128 accesses is read twice
// numerics  float32 sums in a fixed order (a lane's own for each place of an access, those in pairs, then a butterfly
//           over the 8 to 32 lanes of a slice), 1 / sqrt correctly rounded
// source    models.md B1, N-std, N-zc and N-0; B6.1 step 6
// twin      reference/ops/rms_norm.hpp, reference/ops/l2norm.hpp
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <string_view>

#include "fast/kernels/kernel_id.hpp"

namespace assay::fast {

template <typename T>
struct HeadRmsNormParams {
  const T* x = nullptr;
  int64_t x_stride = 0;
  const T* weight = nullptr;
  T* y = nullptr;
  int64_t y_stride = 0;
  int64_t rows = 0;
  int64_t heads = 1;
  int64_t width = 0;
  float epsilon = 0;
  bool is_zero_centred = false;
};

template <typename T>
void head_rms_norm(const HeadRmsNormParams<T>& p, cudaStream_t stream);

template <typename T>
constexpr std::string_view head_rms_norm_id(const HeadRmsNormParams<T>&) {
  return kernel_id<"head_rms_norm", T>;
}

template <typename T>
struct L2NormParams {
  const T* x = nullptr;
  int64_t x_stride = 0;
  T* y = nullptr;
  int64_t y_stride = 0;
  int64_t rows = 0;
  int64_t heads = 1;
  int64_t width = 0;
  float epsilon = 0;
  float scale = 1;
};

template <typename T>
void l2norm(const L2NormParams<T>& p, cudaStream_t stream);

template <typename T>
constexpr std::string_view l2norm_id(const L2NormParams<T>&) {
  return kernel_id<"l2norm_slice", T>;
}

}  // namespace assay::fast
