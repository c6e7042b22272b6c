// gated_rms_norm: gate first, then a root mean square norm inside each of `groups` blocks of consecutive channels.
//
//     u[t, i] = x[t, i] * silu(z[t, i])
//     y[t, i] = weight[i] * u[t, i] / sqrt(mean over the group of i (u[t, .]^2) + epsilon)
//
// in   x       [T, I]
//      z       [T, I]   row t starts at t * z_stride (a slice of in_proj's output)
//      weight  [I]
// out  y       [T, I]   may alias x
//
// requires  rows = T >= 1; groups divides width = I; z_stride >= width
// cost      (3 T I + I) * sizeof(T) bytes
// numerics  float32 sums in a fixed order; silu by expf and a true division
// source    models.md B1, N-gate-1st-G
// twin      reference/ops/gated_rms_norm.hpp
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <string_view>

#include "fast/kernels/kernel_id.hpp"

namespace assay::fast {

template <typename T>
struct GatedRmsNormParams {
  const T* x = nullptr;
  const T* z = nullptr;
  int64_t z_stride = 0;
  const T* weight = nullptr;
  T* y = nullptr;
  int64_t rows = 0;
  int64_t width = 0;
  int64_t groups = 1;
  float epsilon = 0;
};

template <typename T>
void gated_rms_norm(const GatedRmsNormParams<T>& p, cudaStream_t stream);

template <typename T>
constexpr std::string_view gated_rms_norm_id(const GatedRmsNormParams<T>&) {
  return kernel_id<"gated_rms_norm", T>;
}

}  // namespace assay::fast
