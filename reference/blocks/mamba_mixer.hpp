// mamba_mixer: the Mamba-1 mixer (models.md B3.1).
//
//     x, z = in_proj(h);  x = silu(conv1d(x));  dt_low, B, C = x_proj(x);  dt = softplus(dt_proj(dt_low))
//     out_proj(selective_scan(x, dt, -exp(A_log), B, C, D) * silu(z))
//
// in   h        [B, L, H], normed
//      weights  those below `prefix` ("backbone.layers.0.mixer.")
//      state    of this layer, updated
// out           [B, L, H]
// probes        in_proj, conv1d, x_proj, dt, scan, gate, out_proj below `probe` ("layers.0.mixer.")
#pragma once

#include <ATen/ATen.h>

#include <string>

#include "cases/spec/models/mamba.hpp"
#include "reference/blocks/mixer_state.hpp"
#include "reference/pass.hpp"
#include "reference/weight_store.hpp"

namespace assay::reference {

at::Tensor mamba_mixer(const at::Tensor& h, const WeightStore& weights, const std::string& prefix,
                       const MambaFields& fields, MixerState& state, const Pass& pass, const std::string& probe);

}  // namespace assay::reference
