// rms_norm: root mean square norm over the last axis, with the residual add in front of it if residual is given.
//
//     s[t]    = x[t] + residual[t]                                  (x[t] where residual is null)
//     y[t, i] = weight[i] * s[t, i] / sqrt(mean_i(s[t, i]^2) + epsilon)      ((1 + weight[i]) if is_zero_centred)
//
// in   x         [T, H]
//      residual  [T, H]   null: no add
//      weight    [H]
// out  y         [T, H]   may alias x
//      sum       [T, H]   s; given exactly when residual is; may alias x or residual, not y
//
// requires  densely packed; rows = T >= 1, width = H >= 1
// cost      (2 T H + H) * sizeof(T) bytes; with residual (4 T H + H) * sizeof(T)
//           a row of more than 4096 accesses is read twice
// numerics  float32 sums in a fixed order (a thread's own for each place of a 16-byte access, those in pairs, then a
//           butterfly), 1 / sqrt correctly rounded, 1 + weight in float32, s rounded once to T before it is squared
//           where it is written out as T
// source    models.md B1, N-std and N-zc
// twin      reference/ops/rms_norm.hpp
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <string_view>

#include "fast/kernels/kernel_id.hpp"

namespace assay::fast {

template <typename T>
struct RmsNormParams {
  const T* x = nullptr;
  const T* residual = nullptr;
  const T* weight = nullptr;
  T* y = nullptr;
  T* sum = nullptr;
  int64_t rows = 0;
  int64_t width = 0;
  float epsilon = 0;
  bool is_zero_centred = false;
};

template <typename T>
void rms_norm(const RmsNormParams<T>& p, cudaStream_t stream);

template <typename T>
constexpr std::string_view rms_norm_id(const RmsNormParams<T>& p) {
  return p.residual != nullptr ? kernel_id<"rms_norm_residual", T> : kernel_id<"rms_norm", T>;
}

}  // namespace assay::fast
