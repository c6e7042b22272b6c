// The two ends of a model: token ids into the residual stream, and the residual stream into logits.
#pragma once

#include <string>

#include "reference/pass.hpp"
#include "reference/weight_store.hpp"

namespace assay::reference {

// weights.at(name) rows of ids, times multiplier; probe embed (after the multiplier).
at::Tensor embed(const at::Tensor& ids, const WeightStore& weights, const std::string& name, const Pass& pass,
                 double multiplier = 1);

// linear(h, weights.at(name)) * multiplier; probe logits. name: lm_head.weight, or the embedding where tied.
at::Tensor logits(const at::Tensor& h, const WeightStore& weights, const std::string& name, const Pass& pass,
                  double multiplier = 1);

}  // namespace assay::reference
