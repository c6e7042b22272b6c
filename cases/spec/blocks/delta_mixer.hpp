// DeltaMixerShape: the gated delta rule mixer of Qwen3-Next and Qwen3.5 (models.md B6).
//
//     q, k, v, z, b, a = projections;  q, k, v = silu(causal_conv1d(q|k|v));  beta = sigmoid(b)
//     g = -exp(A_log) softplus(a + dt_bias);  o = gated delta rule(l2norm(q) / sqrt(dk), l2norm(k), v, g, beta)
//     out_proj(w * rms_norm(o) * silu(z)), the norm over dv, head by head
//
// weights  packed (qwen3_next): in_proj_qkvz and in_proj_ba hold a block of rows for each key head, [q, k, r heads of
//          v, r heads of z] and [r of b, r of a], r = Hv / Hk; plain (qwen3_5): in_proj_qkv, in_proj_z, in_proj_b,
//          in_proj_a; conv1d, dt_bias, A_log, norm, out_proj
// probes   the projections under their names, conv1d [2 Hk dk + Hv dv], beta [Hv], g [Hv], delta [Hv, dv],
//          norm [Hv, dv], out_proj [H]; states conv_state [2 Hk dk + Hv dv, K], delta_state [Hv, dk, dv]
#pragma once

#include "cases/spec/blocks/tables.hpp"

namespace assay {

struct DeltaMixerShape {
  int64_t hidden_size = 0;                 // H
  int64_t key_heads = 0, value_heads = 0;  // Hk, Hv; value head h reads key head h / (Hv / Hk)
  int64_t key_dim = 0, value_dim = 0;      // dk, dv
  int64_t conv_kernel = 0;                 // K
  double epsilon = 0;                      // of the gated norm
  bool is_packed = false;

  int64_t keys() const { return key_heads * key_dim; }
  int64_t values() const { return value_heads * value_dim; }
  int64_t conv_dim() const { return 2 * keys() + values(); }
};

void describe_weights(WeightTable& table, const std::string& prefix, const DeltaMixerShape& shape);
void describe_probes(ProbeTable& table, const std::string& probe, int64_t layer, const DeltaMixerShape& shape);

}  // namespace assay
