// selective_scan: the Mamba-1 state-space recurrence over a sequence.
//
//     d[t, i]    = softplus(dt[t, i] + dt_bias[i])           (dt[t, i] as it is where dt_bias is null)
//     h[t, i, n] = exp(d[t, i] * a[i, n]) * h[t-1, i, n] + d[t, i] * x[t, i] * b[t, n]
//     u[t, i]    = sum_n h[t, i, n] * c[t, n] + skip[i] * x[t, i]          channel i reads group i / (I / G) of b, c
//     y[t, i]    = u[t, i] * silu(z[t, i])                    (u[t, i] where z is null)
//
// in   x              [B, L, I]  row (b, t) at (b * L + t) * x_stride; the strides below likewise
//      dt             [B, L, I]  dt_stride; before the bias
//      dt_bias        [I]        null: dt is used as it is, without softplus
//      a              [I, N]     float32, -exp(A_log)
//      b, c           [B, L, G, N]  b_stride, c_stride (slices of x_proj's output); group g at g * b_group_stride,
//                     c_group_stride from there
//      skip           [I]        float32, D
//      z              [B, L, I]  z_stride (a slice of in_proj's output); null: no gate
//      initial_state  [B, I, N]  float32; null: zeros
//      workspace      selective_scan_workspace_bytes(p) bytes, 16-byte aligned; null where that is 0
// out  y              [B, L, I]  dense; may not alias an input
//      final_state    [B, I, N]  float32; null: not written; may alias initial_state
//      dt_out         [B, L, I]  d, dense, for probes; null: not written
//      ungated        [B, L, I]  u, dense, for probes; null: not written
//
// requires  1 <= N <= 256; G divides I; every stride >= the width of its row
// cost      (x, dt, z, y) 4 B L I sizeof(T) + 2 B L G N sizeof(T) + 8 B I N bytes, each touched once (x, dt and b twice
//           where time is cut into segments, plus the workspace)
// numerics  float32; each step's decay by itself, without bias where it is near 1 (decay.cuh); the sum over n in a
//           fixed order. Time is cut into segments where B * I alone does not fill the device; the carry into a segment
//           is exp(a * sum d), of a compensated sum, times the carry before it. The cut depends on the shape alone, so
//           results are the same in every run, but a row of a batch may differ from the row alone in the last digits.
// source    models.md B3; Gu & Dao 2023, algorithm 2
// twin      reference/ops/selective_scan.hpp
//
// selective_scan_update: one step on a stored state, in place; x, dt, z [B, I], b, c [B, G, N], y, dt_out, ungated
// [B, I].
// cost      8 B I N + 4 I N + 4 B I sizeof(T) + 2 B G N sizeof(T) bytes
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "fast/kernels/kernel_id.hpp"

namespace assay::fast {

template <typename T>
struct SelectiveScanParams {
  const T* x = nullptr;
  int64_t x_stride = 0;
  const T* dt = nullptr;
  int64_t dt_stride = 0;
  const T* dt_bias = nullptr;
  const float* a = nullptr;
  const T* b = nullptr;
  int64_t b_stride = 0;
  int64_t b_group_stride = 0;
  const T* c = nullptr;
  int64_t c_stride = 0;
  int64_t c_group_stride = 0;
  const float* skip = nullptr;
  const T* z = nullptr;
  int64_t z_stride = 0;
  const float* initial_state = nullptr;
  T* y = nullptr;
  float* final_state = nullptr;
  T* dt_out = nullptr;
  T* ungated = nullptr;
  void* workspace = nullptr;
  int64_t batch = 0;
  int64_t length = 0;
  int64_t channels = 0;  // I
  int64_t states = 0;    // N
  int64_t groups = 1;    // G
};

template <typename T>
size_t selective_scan_workspace_bytes(const SelectiveScanParams<T>& p);
template <typename T>
void selective_scan(const SelectiveScanParams<T>& p, cudaStream_t stream);

template <typename T>
constexpr std::string_view selective_scan_id(const SelectiveScanParams<T>&) {
  return kernel_id<"selective_scan_sequence", T>;
}

template <typename T>
struct SelectiveScanUpdateParams {
  const T* x = nullptr;
  int64_t x_stride = 0;
  const T* dt = nullptr;
  int64_t dt_stride = 0;
  const T* dt_bias = nullptr;
  const float* a = nullptr;
  const T* b = nullptr;
  int64_t b_stride = 0;
  int64_t b_group_stride = 0;
  const T* c = nullptr;
  int64_t c_stride = 0;
  int64_t c_group_stride = 0;
  const float* skip = nullptr;
  const T* z = nullptr;
  int64_t z_stride = 0;
  float* state = nullptr;  // [B, I, N], read and written
  T* y = nullptr;
  T* dt_out = nullptr;
  T* ungated = nullptr;
  int64_t batch = 0;
  int64_t channels = 0;
  int64_t states = 0;
  int64_t groups = 1;
};

template <typename T>
void selective_scan_update(const SelectiveScanUpdateParams<T>& p, cudaStream_t stream);

template <typename T>
constexpr std::string_view selective_scan_update_id(const SelectiveScanUpdateParams<T>&) {
  return kernel_id<"selective_scan_update", T>;
}

}  // namespace assay::fast
