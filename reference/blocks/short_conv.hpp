// short_conv: the gated short convolution of LFM2 (models.md B5).
//
//     B, C, x = in_proj(h);  v = causal_conv1d(B * x), no activation;  out_proj(C * v)
//
// in   h        [B, L, H], normed
//      place    weights and probes ("model.layers.0.conv.", "layers.0.mixer.")
//      state    conv of this layer, updated: the last K columns of B * x
// out           [B, L, H]
// probes        in_proj, conv1d, gate, out_proj
#pragma once

#include <ATen/ATen.h>

#include "cases/spec/blocks/short_conv.hpp"
#include "reference/blocks/layer_state.hpp"
#include "reference/pass.hpp"
#include "reference/place.hpp"

namespace assay::reference {

at::Tensor short_conv(const at::Tensor& h, const Place& place, const ShortConvShape& shape, LayerState& state,
                      const Pass& pass);

}  // namespace assay::reference
