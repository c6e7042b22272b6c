// mamba_mixer: the Mamba-1 mixer and its variants (models.md B3).
//
//     x, z = in_proj(h);  x = silu(conv1d(x));  dt_low, B, C = x_proj(x);  dt = softplus(dt_proj(dt_low))
//     out_proj(selective_scan(x, dt, -exp(A_log), B, C, D) * silu(z))
//
// falcon_mamba and jamba norm dt_low, B and C, each over its own width; with heads (zamba) what lies between the
// convolution and the gate is done head by head, over neighbouring channels and with parameters of the head's own.
//
// in   h        [B, L, H], normed
//      place    weights and probes ("backbone.layers.0.mixer.", "layers.0.mixer.")
//      state    of this layer, updated
// out           [B, L, H]
// probes        in_proj, conv1d, x_proj (without heads), selection (with norms or heads), dt, scan, gate, out_proj
#pragma once

#include <ATen/ATen.h>

#include "cases/spec/blocks/mamba_mixer.hpp"
#include "reference/blocks/layer_state.hpp"
#include "reference/pass.hpp"
#include "reference/place.hpp"

namespace assay::reference {

at::Tensor mamba_mixer(const at::Tensor& h, const Place& place, const MambaMixerShape& shape, LayerState& state,
                       const Pass& pass);

}  // namespace assay::reference
