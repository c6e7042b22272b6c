// gated_delta_rule: a matrix state that decays and then corrects what it holds under the key of the column, in chunks.
//
//     k^ = k / sqrt(sum k^2 + epsilon);  q^ likewise, times 1 / sqrt(K)       (k and q as they are without has_l2norm)
//     g[t, h]    = a[h] softplus(g[t, h] + dt_bias[h])                         (g[t, h] as it is where a is null)
//     beta[t, h] = sigmoid(beta[t, h])                       (beta[t, h] as it is without has_sigmoid)
//     S[t] = exp(g[t]) S[t-1] + k^[t] e[t]^T,   e[t] = beta[t] (v[t] - exp(g[t]) S[t-1]^T k^[t])
//     o[t] = S[t]^T q^[t]                                    value head h reads key head h / (Hv / Hk)
//
// By chunks of Q = 64 steps, with c_i the inclusive sum of g inside the chunk, D_ij = exp(c_i - c_j) for j <= i,
// otherwise 0, and o the product element by element:
//     within   A = strictly lower part of diag(beta) (K^ K^^T) o D;  X = (I + A)^-1 diag(beta);  P = (Q^ K^^T) o D
//     state    R = V - diag(e^c) K^ S;  E = X R;  O = diag(e^c) Q^ S + (P X) R
//     passing  S <- e^{c_Q} S + K^^T diag(e^{c_Q - c}) E
//
// in   q, k           [B, L, Hk, K]  row (b, t) at (b * L + t) * q_stride; the strides below likewise
//      v              [B, L, Hv, V]  v_stride (q, k, v: slices of the convolution's output)
//      g              [B, L, Hv]     g_stride; the logarithm of the decay, or what a and dt_bias make it from
//      a              [Hv]           float32, -exp(A_log); null: g is used as it is
//      dt_bias        [Hv]           null exactly where a is
//      beta           [B, L, Hv]     beta_stride
//      initial_state  [B, Hv, K, V]  float32; null: zeros
//      workspace      gated_delta_rule_workspace_bytes(p) bytes, 16-byte aligned
// out  o              [B, L, Hv, V]  dense; may not alias an input
//      final_state    [B, Hv, K, V]  float32; null: not written; may alias initial_state
//      g_out          [B, L, Hv]     float32, the logarithm of the decay, dense, for probes; null: not written
//      beta_out       [B, L, Hv]     beta as used, dense, for probes; null: not written
//
// No mask: a padded column comes with q = k = v = 0 (the convolution has zeroed it) and then moves a state only by its
// decay, as the twin's does; left of the first token the state is zero.
//
// requires  Hk divides Hv; 1 <= K <= kDeltaRuleKeyDim; g <= 0; B, L, V otherwise any size
// cost      bytes: (2 Hk K + 2 Hv V + 2 Hv) B L sizeof(T) + 8 B Hv K V, plus the workspace (132 floats a value head and
//           step) once in and, for each tile of 64 value columns (32 where those would be few), once out;
//           flops: B L Hv (6 K V + 2 Q (K + V) + 2 Q^2 / 3), float32 FMA. What bounds it next to those is shared
//           memory: a thread loads 16 floats for 64 FMA
// numerics  float32; the sums c in double, kept as two floats, so that c_i - c_j is exact to float32 even behind fast
//           decay; exp within 1 ulp; the inverse by forward substitution in blocks of 16, joined by products of blocks;
//           a fixed order of sums, the same for every width of tile
// source    models.md B6.1 and B6.2; Yang, Kautz & Hatamizadeh 2024. P X in place of P E: output and correction of a
//           chunk then wait for R alone
// twin      reference/ops/gated_delta_rule.hpp, reference/ops/l2norm.hpp
//
// gated_delta_rule_update: one step on a stored state, in place; q, k [B, Hk, K], v [B, Hv, V], g, beta [B, Hv], o,
// g_out, beta_out alike.
// cost      8 B Hv K V + (2 Hk K + 2 Hv V + 2 Hv) B sizeof(T) bytes
// numerics  o = exp(g) S[t-1]^T q^ + (k^ . q^) e: the state is read once
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "fast/kernels/kernel_id.hpp"

namespace assay::fast {

inline constexpr int kDeltaRuleChunk = 64;
inline constexpr int kDeltaRuleKeyDim = 128;

// What both kernels take; the update has one row (b) where the sequence has rows (b, t).
template <typename T>
struct GatedDeltaRuleOperands {
  const T* q = nullptr;
  int64_t q_stride = 0;
  const T* k = nullptr;
  int64_t k_stride = 0;
  const T* v = nullptr;
  int64_t v_stride = 0;
  const T* g = nullptr;
  int64_t g_stride = 0;
  const float* a = nullptr;
  const T* dt_bias = nullptr;
  const T* beta = nullptr;
  int64_t beta_stride = 0;
  bool has_sigmoid = false;
  bool has_l2norm = true;
  float epsilon = 1e-6f;  // of has_l2norm
  T* o = nullptr;
  float* g_out = nullptr;
  T* beta_out = nullptr;
  int64_t batch = 0;
  int64_t key_heads = 0;    // Hk
  int64_t value_heads = 0;  // Hv
  int64_t key_dim = 0;      // K
  int64_t value_dim = 0;    // V
};

template <typename T>
struct GatedDeltaRuleParams : GatedDeltaRuleOperands<T> {
  int64_t length = 0;
  const float* initial_state = nullptr;
  float* final_state = nullptr;
  void* workspace = nullptr;
};

template <typename T>
size_t gated_delta_rule_workspace_bytes(const GatedDeltaRuleParams<T>& p);
template <typename T>
void gated_delta_rule_chunked(const GatedDeltaRuleParams<T>& p, cudaStream_t stream);

template <typename T>
constexpr std::string_view gated_delta_rule_chunked_id(const GatedDeltaRuleParams<T>&) {
  return kernel_id<"gated_delta_rule_chunked", T>;
}

template <typename T>
struct GatedDeltaRuleUpdateParams : GatedDeltaRuleOperands<T> {
  float* state = nullptr;  // [B, Hv, K, V], read and written
};

template <typename T>
void gated_delta_rule_update(const GatedDeltaRuleUpdateParams<T>& p, cudaStream_t stream);

template <typename T>
constexpr std::string_view gated_delta_rule_update_id(const GatedDeltaRuleUpdateParams<T>&) {
  return kernel_id<"gated_delta_rule_update", T>;
}

}  // namespace assay::fast
