// delta_mixer: the gated delta rule mixer of Qwen3-Next and Qwen3.5 (models.md B6.1).
//
//     mask;  q, k, v, z, b, a = projections;  q, k, v = silu(conv1d(q|k|v));  beta = sigmoid(b)
//     g = -exp(A_log) softplus(a + dt_bias);  o = gated_delta_rule(l2norm(q) / sqrt(dk), l2norm(k), v, g, beta)
//     out_proj(w * rms_norm(o) * silu(z)), the norm over dv, head by head
//
// Packed projections hold their parts key head by key head; gather_columns lays them side by side. The norms of q and
// k, the sigmoid and the decay are done inside the rule's kernels.
//
// in/out  input   [T, H], dense; rows of padded columns are zeroed
//         states  conv and delta of pass.states[layer]
// out     output  [T, H]
// probes  {probe}: the projections, conv1d, beta, g, delta, norm, out_proj; beta and g are outputs of the rule's
// kernels
//         that only captured calls write
// twin    reference/blocks/delta_mixer.hpp
#pragma once

#include <string>

#include "cases/spec/blocks/delta_mixer.hpp"
#include "fast/blocks/pass.hpp"
#include "fast/blocks/weights.hpp"

namespace assay::fast {

struct DeltaMixerWeights {
  Weight in_proj_qkvz, in_proj_ba;                           // packed
  Weight in_proj_qkv, in_proj_z, in_proj_b, in_proj_a;       // plain
  const int32_t *qkvz_order = nullptr, *ba_order = nullptr;  // packed: q, k, v, z; b, a
  Weight conv1d, dt_bias, norm, out_proj;
  const float* decay = nullptr;  // [Hv]
};

// prefix: "model.layers.3.linear_attn."
DeltaMixerWeights delta_mixer_weights(Weights& weights, const std::string& prefix, const DeltaMixerShape& shape);

// probe: "layers.3.mixer."
void delta_mixer(Pass& pass, const DeltaMixerShape& shape, const DeltaMixerWeights& weights, const std::string& probe,
                 int64_t layer, const Matrix& input, const Matrix& output);

// Of a packed row, the places of all q, then all k, v and z; of all b, then all a.
std::vector<int32_t> packed_qkvz_order(const DeltaMixerShape& shape);
std::vector<int32_t> packed_ba_order(const DeltaMixerShape& shape);

}  // namespace assay::fast
