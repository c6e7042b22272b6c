// Routed experts and a shared one beside them, which every token takes (models.md B10).
//
//     experts_and_shared        shared(x) + experts(x)
//     experts_and_gated_shared  experts(x) + sigmoid(gate x) * shared(x)
//
// in      input   [T, H], normed
// out     output  [T, H]
// probes  {probe}: those of experts, shared.{act, down_proj}; gated: shared.gate and out as well
#pragma once

#include <string>

#include "cases/spec/blocks/experts.hpp"
#include "cases/spec/blocks/feed_forward.hpp"
#include "fast/blocks/experts.hpp"
#include "fast/blocks/feed_forward.hpp"
#include "fast/blocks/pass.hpp"
#include "fast/blocks/weights.hpp"

namespace assay::fast {

struct SharedExpertShape {
  ExpertsShape experts;
  FeedForwardShape shared;
};

struct SharedExpertWeights {
  ExpertsWeights experts;
  FeedForwardWeights shared;
  Weight gate;  // [1, H], of the gated form
};

// routed [T, H] is scratch, for what the experts give. probe: "layers.3.ff."
void experts_and_shared(Pass& pass, const SharedExpertShape& shape, const SharedExpertWeights& weights,
                        const std::string& probe, const Matrix& input, const Matrix& routed, const Matrix& output);
void experts_and_gated_shared(Pass& pass, const SharedExpertShape& shape, const SharedExpertWeights& weights,
                              const std::string& probe, const Matrix& input, const Matrix& output);

}  // namespace assay::fast
