// experts: the routed feed-forward part (models.md B10); a model adds its shared experts.
//
// in      input   [T, H], normed
// out     output  [T, H]
// probes  {probe}{router, routing, experts}; routing is an output of the router kernel that only captured calls write
// forms   experts_grouped or experts_gemv, by the number of tokens unless the pass says which
// twin    reference/blocks/experts.hpp
#pragma once

#include <string>

#include "cases/spec/blocks/experts.hpp"
#include "fast/blocks/pass.hpp"
#include "fast/blocks/weights.hpp"

namespace assay::fast {

struct ExpertsWeights {
  Weight router, selection_bias;        // [E, H], [E]
  const float* first = nullptr;         // [E, 2F or F, X]
  const float* down = nullptr;          // [E, X, F]
  Weight fc1, fc1_bias, fc2, fc2_bias;  // of latent experts
};

// prefix: "model.layers.3.mlp."
ExpertsWeights experts_weights(const Weights& weights, const std::string& prefix, const ExpertsShape& shape);

// probe: "layers.3.ff."
void experts(Pass& pass, const ExpertsShape& shape, const ExpertsWeights& weights, const std::string& probe,
             const Matrix& input, const Matrix& output);

}  // namespace assay::fast
