// ssd: the Mamba-2 state-space recurrence (structured state-space duality) over a sequence, in chunks.
//
//     d[t, h] = clamp(softplus(dt[t, h] + dt_bias[h]), dt_min, dt_max)     (dt[t, h] as it is where dt_bias is null)
//     S[t, h] = exp(d[t, h] * a[h]) * S[t-1, h] + d[t, h] * x[t, h] outer b[t, g]      g = h / (Nh / G)
//     y[t, h] = S[t, h] c[t, g] + skip[h] * x[t, h]
//
// By chunks of Q steps, with s_i the inclusive sum of d * a inside the chunk:
//     scores   W[i, j]  = c_i . b_j, once for the heads of a group
//     states   Z        = sum_j exp(s_Q - s_j) d_j x_j outer b_j
//     passing  S_in     <- exp(s_Q) S_in + Z, chunk after chunk
//     output   y_i      = sum_{j <= i} exp(s_i - s_j) d_j W[i, j] x_j + exp(s_i) S_in c_i + skip x_i
//
// States, passing and output are one kernel: a block has Z in registers when the chunk before hands over its end state.
//
// in   x              [B, L, Nh, P]  row (b, t) at (b * L + t) * x_stride; the strides below likewise
//      dt             [B, L, Nh]     dt_stride (a slice of in_proj's output); before the bias
//      dt_bias        [Nh]           null: dt is used as it is: no softplus, no clamp
//      a              [Nh]           float32, -exp(A_log)
//      b, c           [B, L, G, N]   b_stride, c_stride (slices of the convolution's output)
//      skip           [Nh]           float32, D
//      initial_state  [B, Nh, P, N]  float32; null: zeros
//      workspace      ssd_workspace_bytes(p) bytes, 16-byte aligned
// out  y              [B, L, Nh, P]  dense; may not alias an input
//      final_state    [B, Nh, P, N]  float32; null: not written; may alias initial_state
//      dt_out         [B, L, Nh]     d, dense, for probes; null: not written
//
// requires  G divides Nh; 0 <= chunk_size (0, and what is above kSsdChunk: kSsdChunk; it shows in the rounding alone);
//           dt_min <= dt_max; d a <= 0, as decays inside a chunk are products of two; L, Nh, P, N, G otherwise any size
// cost      bytes: (2 Nh P + 2 G N + Nh) B L sizeof(T) + 8 B Nh P N, plus the workspace: the states of L / Q chunks
//           written once and read twice; flops: B L (Nh (Q P + 4 P N) + G Q N), float32 FMA, with W and its
//           product up to the diagonal
// numerics  float32; the sums s in double, kept as two floats, so that s_i - s_j is exact to float32 even behind fast
//           decay; exp within 1 ulp; a fixed order of sums. A NaN or infinite x reaches up to 15 earlier steps of its
//           own chunk too (0 * NaN in the product)
// source    models.md B4.2; Dao & Gu 2024, section 6
// twin      reference/ops/ssd.hpp
//
// ssd_update: one step on a stored state, in place; x [B, Nh, P], dt [B, Nh], b, c [B, G, N], y, dt_out alike.
// cost      8 B Nh P N + (2 Nh P + 2 G N + Nh) B sizeof(T) bytes
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

#include "fast/kernels/kernel_id.hpp"

namespace assay::fast {

inline constexpr int kSsdChunk = 128;  // rows of a tile: the longest chunk the kernels work in

template <typename T>
struct SsdParams {
  const T* x = nullptr;
  int64_t x_stride = 0;
  const T* dt = nullptr;
  int64_t dt_stride = 0;
  const T* dt_bias = nullptr;
  const float* a = nullptr;
  const T* b = nullptr;
  int64_t b_stride = 0;
  const T* c = nullptr;
  int64_t c_stride = 0;
  const float* skip = nullptr;
  const float* initial_state = nullptr;
  T* y = nullptr;
  float* final_state = nullptr;
  T* dt_out = nullptr;
  void* workspace = nullptr;
  int64_t batch = 0;
  int64_t length = 0;
  int64_t heads = 0;   // Nh
  int64_t width = 0;   // P
  int64_t states = 0;  // N
  int64_t groups = 1;  // G
  int64_t chunk_size = 0;
  float dt_min = 0;
  float dt_max = std::numeric_limits<float>::infinity();
};

template <typename T>
size_t ssd_workspace_bytes(const SsdParams<T>& p);
template <typename T>
void ssd_chunked(const SsdParams<T>& p, cudaStream_t stream);

template <typename T>
constexpr std::string_view ssd_chunked_id(const SsdParams<T>&) {
  return kernel_id<"ssd_chunked", T>;
}

template <typename T>
struct SsdUpdateParams {
  const T* x = nullptr;
  int64_t x_stride = 0;
  const T* dt = nullptr;
  int64_t dt_stride = 0;
  const T* dt_bias = nullptr;
  const float* a = nullptr;
  const T* b = nullptr;
  int64_t b_stride = 0;
  const T* c = nullptr;
  int64_t c_stride = 0;
  const float* skip = nullptr;
  float* state = nullptr;  // [B, Nh, P, N], read and written
  T* y = nullptr;
  T* dt_out = nullptr;
  int64_t batch = 0;
  int64_t heads = 0;
  int64_t width = 0;
  int64_t states = 0;
  int64_t groups = 1;
  float dt_min = 0;
  float dt_max = std::numeric_limits<float>::infinity();
};

template <typename T>
void ssd_update(const SsdUpdateParams<T>& p, cudaStream_t stream);

template <typename T>
constexpr std::string_view ssd_update_id(const SsdUpdateParams<T>&) {
  return kernel_id<"ssd_update", T>;
}

}  // namespace assay::fast
