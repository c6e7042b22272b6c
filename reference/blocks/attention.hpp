// attention_block: projections, head norms, rotary, cache, attention, output gate, output projection (models.md B8).
//
// in   h        [B, L, in_width], normed
//      place    weights and probes ("model.layers.0.self_attn.", "layers.0.attn.")
//      state    key and value of this layer, longer by L columns afterwards
//      adapter  ordinal of the call site, where the shape has adapters (zamba2)
// out           [B, L, H]
// probes        q, k, v, attention, gated (with an output gate), out_proj
#pragma once

#include <ATen/ATen.h>

#include "cases/spec/blocks/attention.hpp"
#include "reference/blocks/layer_state.hpp"
#include "reference/pass.hpp"
#include "reference/place.hpp"

namespace assay::reference {

at::Tensor attention_block(const at::Tensor& h, const Place& place, const AttentionShape& shape, LayerState& state,
                           const Pass& pass, int64_t adapter = 0);

}  // namespace assay::reference
