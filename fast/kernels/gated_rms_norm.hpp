// gated_rms_norm, rms_norm_gated: a root mean square norm inside each of `groups` blocks of consecutive channels, and a
// gate before or after it.
//
//     ms(u)           = mean over the group of i (u[t, .]^2)
//     gated_rms_norm    u = x * silu(z);  y[t, i] = weight[i] * u[t, i] / sqrt(ms(u) + epsilon)             gate first
//     rms_norm_gated    y[t, i] = weight[i] * x[t, i] / sqrt(ms(x) + epsilon) * silu(z[t, i])               norm first
//
// in   x       [T, I]
//      z       [T, I]   row t starts at t * z_stride (a slice of in_proj's output)
//      weight  [I], or [I / groups] with is_weight_shared: one for every group (the heads of the delta rule)
// out  y       [T, I]   may alias x
//
// requires  rows = T >= 1; groups divides width = I; z_stride >= width
// cost      (3 T I + size of weight) * sizeof(T) bytes; a group of more than 4096 accesses is read twice
// numerics  float32 sums in a fixed order (a thread's own for each place of a 16-byte access, those in pairs, then a
//           butterfly); silu by expf and a true division
// source    models.md B1, N-gate-1st-G; N-gate-last-G and N-gate-gdn
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
  bool is_weight_shared = false;
  float epsilon = 0;
};

template <typename T>
void gated_rms_norm(const GatedRmsNormParams<T>& p, cudaStream_t stream);
template <typename T>
void rms_norm_gated(const GatedRmsNormParams<T>& p, cudaStream_t stream);

template <typename T>
constexpr std::string_view gated_rms_norm_id(const GatedRmsNormParams<T>&) {
  return kernel_id<"gated_rms_norm", T>;
}
template <typename T>
constexpr std::string_view rms_norm_gated_id(const GatedRmsNormParams<T>&) {
  return kernel_id<"rms_norm_gated", T>;
}

}  // namespace assay::fast
