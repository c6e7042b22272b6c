// mamba2_mixer: the Mamba-2 mixer (models.md B4.1).
//
//     z, x, B, C, dt = multipliers * in_proj(in_multiplier * h);  x, B, C = silu(conv1d(x|B|C))
//     dt = clamp(softplus(dt + dt_bias), limits);  y = ssd(x, dt, -exp(A_log), B, C, D)
//     out_proj(y gated by z and normed, as shape.gate says)
//
// in   h        [B, L, H], normed
//      place    weights and probes ("backbone.layers.0.mixer.", "layers.0.mixer.")
//      state    of this layer, updated
// out           [B, L, H]
// probes        in_proj, conv1d, dt, ssd, norm (gate where there is no norm), out_proj
#pragma once

#include <ATen/ATen.h>

#include "cases/spec/blocks/mamba2_mixer.hpp"
#include "reference/blocks/layer_state.hpp"
#include "reference/pass.hpp"
#include "reference/place.hpp"

namespace assay::reference {

at::Tensor mamba2_mixer(const at::Tensor& h, const Place& place, const Mamba2MixerShape& shape, LayerState& state,
                        const Pass& pass);

}  // namespace assay::reference
