// gated_delta_rule: a matrix state that decays and then corrects what it holds under the key of the column.
//
//     S[t] = exp(g[t]) S[t-1] + k[t] e[t]^T,   e[t] = beta[t] (v[t] - exp(g[t]) S[t-1]^T k[t])
//     o[t] = S[t]^T q[t]                       value head h has q and k of head floor(h / (Hv / Hk))
//
// in   q, k           [B, L, Hk, dk], of unit length, q scaled as well (reference/ops/l2norm.hpp)
//      v              [B, L, Hv, dv]
//      g              [B, L, Hv], at most 0: the logarithm of the decay
//      beta           [B, L, Hv]
//      initial_state  [B, Hv, dk, dv]; undefined means zeros
// out  o              [B, L, Hv, dv]
//      final_state    [B, Hv, dk, dv]
//
// requires  Hv % Hk == 0; chunk_size >= 1
// numerics  the rule is ill-conditioned where the state has rank one: the first columns carry the largest errors
// source    Yang, Kautz & Hatamizadeh 2024; models.md B6.1 step 7 (recurrent), B6.2 (chunked)
#pragma once

#include <ATen/ATen.h>

namespace assay::reference {

struct GatedDeltaRule {
  at::Tensor o;
  at::Tensor final_state;
};

GatedDeltaRule gated_delta_rule_recurrent(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                          const at::Tensor& g, const at::Tensor& beta,
                                          const at::Tensor& initial_state = {});

// The original's chunk; a result does not depend on it.
constexpr int64_t kDeltaRuleChunk = 64;

// The same chunk by chunk: the corrections e of a chunk depend on each other through one unit lower triangular system,
// on earlier chunks through the state. The last chunk is as long as what is left.
GatedDeltaRule gated_delta_rule_chunked(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                        const at::Tensor& g, const at::Tensor& beta,
                                        const at::Tensor& initial_state = {}, int64_t chunk_size = kDeltaRuleChunk);

}  // namespace assay::reference
