// mamba2_mixer: the Mamba-2 mixer (models.md B4.1).
//
//     z, xBC, dt = in_proj(h);  x, B, C = silu(conv1d(xBC));  dt = clamp(softplus(dt + dt_bias), limits)
//     out_proj(gated_rms_norm(ssd(x, dt, -exp(A_log), B, C, D), z))
//
// in   h        [B, L, H], normed
//      weights  those below `prefix` ("backbone.layers.0.mixer.")
//      state    of this layer, updated
// out           [B, L, H]
// probes        in_proj, conv1d, dt, ssd, norm, out_proj below `probe` ("layers.0.mixer.")
#pragma once

#include <ATen/ATen.h>

#include <string>

#include "cases/spec/models/mamba2.hpp"
#include "reference/blocks/mixer_state.hpp"
#include "reference/pass.hpp"
#include "reference/weight_store.hpp"

namespace assay::reference {

at::Tensor mamba2_mixer(const at::Tensor& h, const WeightStore& weights, const std::string& prefix,
                        const Mamba2Fields& fields, MixerState& state, const Pass& pass, const std::string& probe);

}  // namespace assay::reference
