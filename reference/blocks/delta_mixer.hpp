// delta_mixer: the gated delta rule mixer of Qwen3-Next and Qwen3.5 (models.md B6.1).
//
//     q, k, v, z, b, a = projections;  q, k, v = silu(conv1d(q|k|v));  beta = sigmoid(b)
//     g = -exp(A_log) softplus(a + dt_bias);  o = gated_delta_rule(l2norm(q) / sqrt(dk), l2norm(k), v, g, beta)
//     out_proj(w * rms_norm(o) * silu(z)), the norm over dv, head by head
//
// in   h      [B, L, H], normed
//      place  weights and probes ("model.layers.0.linear_attn.", "layers.0.mixer.")
//      state  conv and delta of this layer, updated
// out         [B, L, H]
// probes      the projections, conv1d, beta, g, delta, norm, out_proj
#pragma once

#include <ATen/ATen.h>

#include "cases/spec/blocks/delta_mixer.hpp"
#include "reference/blocks/layer_state.hpp"
#include "reference/pass.hpp"
#include "reference/place.hpp"

namespace assay::reference {

at::Tensor delta_mixer(const at::Tensor& h, const Place& place, const DeltaMixerShape& shape, LayerState& state,
                       const Pass& pass);

}  // namespace assay::reference
