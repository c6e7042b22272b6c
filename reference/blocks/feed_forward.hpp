// feed_forward: a dense feed-forward part (models.md B9).
//
// in   x        [..., in_width], normed
//      place    weights and probes ("model.layers.0.feed_forward.", "layers.0.ff.")
//      adapter  ordinal of the call site, where the shape has adapters (zamba2)
// out           [..., H]
// probes        act, down_proj
#pragma once

#include <ATen/ATen.h>

#include "cases/spec/blocks/feed_forward.hpp"
#include "reference/pass.hpp"
#include "reference/place.hpp"

namespace assay::reference {

at::Tensor feed_forward(const at::Tensor& x, const Place& place, const FeedForwardShape& shape, const Pass& pass,
                        int64_t adapter = 0);

}  // namespace assay::reference
