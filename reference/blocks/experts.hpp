// experts: the routed feed-forward part (models.md B10); a model adds its shared experts.
//
// in   x      [B, L, H], normed
//      place  weights and probes ("model.layers.0.mlp.", "layers.0.ff.")
// out         [B, L, H]
// probes      router, routing, experts
//
// Every expert computes every token and the weights, 0 for the others, choose: slow, and nothing to get wrong. A token
// that an expert is not chosen for must not reach it in a subject where that matters (NaN, infinity): 0 times NaN would
// show here.
#pragma once

#include <ATen/ATen.h>

#include "cases/spec/blocks/experts.hpp"
#include "reference/pass.hpp"
#include "reference/place.hpp"

namespace assay::reference {

at::Tensor experts(const at::Tensor& x, const Place& place, const ExpertsShape& shape, const Pass& pass);

}  // namespace assay::reference
