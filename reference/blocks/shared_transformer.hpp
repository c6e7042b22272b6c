// shared_transformer: a block that several layers call, and the calling layer's projection of its output (models.md
// B12). Nothing is added inside; the caller adds the result to the input of its mixer's norm only.
//
//     u = rms_norm([h ; e0]);  a = rms_norm(attention(u));  T = linear(feed_forward(a))
//
// in   h        [B, L, H], the residual stream
//      e0       [B, L, H], the embedded tokens
//      block    weights of the block ("model.layers.2.shared_transf.") and probes of the calling layer ("layers.7.")
//      site     linear of the calling layer ("model.layers.7.")
//      state    key and value of the calling layer: each call site keeps its own
//      ordinal  of the call site, where the shape has adapters (zamba2)
// out  T        [B, L, H]
// probes        shared_norm, attn.*, ff_norm, ff.*, shared_out
#pragma once

#include <ATen/ATen.h>

#include "cases/spec/blocks/shared_transformer.hpp"
#include "reference/blocks/layer_state.hpp"
#include "reference/pass.hpp"
#include "reference/place.hpp"

namespace assay::reference {

at::Tensor shared_transformer(const at::Tensor& h, const at::Tensor& e0, const Place& block, const Place& site,
                              const SharedTransformerShape& shape, LayerState& state, const Pass& pass,
                              int64_t ordinal = 0);

}  // namespace assay::reference
