// feed_forward: a dense feed-forward part (models.md B9).
//
//     gated  down(act(gate_multiplier * gate(x)) * up(x)) * down_multiplier;   plain  down(act(up(x)))
//
// in      input   [T, in_width], normed
// out     output  [T, H]
// probes  {probe}{act, down_proj}
// twin    reference/blocks/feed_forward.hpp
#pragma once

#include <cstdint>
#include <string>

#include "cases/spec/blocks/feed_forward.hpp"
#include "fast/blocks/adapter.hpp"
#include "fast/blocks/pass.hpp"
#include "fast/blocks/weights.hpp"

namespace assay::fast {

struct FeedForwardWeights {
  Weight gate, gate_bias;  // fused: gate and up, [2F, in]; null where the part is plain
  Weight up, up_bias, down, down_bias;
  Adapter adapter;  // of the fused projection
};

// prefix: "model.layers.3.feed_forward."; adapter: ordinal of the call site, where the shape has adapters.
FeedForwardWeights feed_forward_weights(const Weights& weights, const std::string& prefix,
                                        const FeedForwardShape& shape, int64_t adapter = 0);

// probe: "layers.3.ff."
void feed_forward(Pass& pass, const FeedForwardShape& shape, const FeedForwardWeights& weights,
                  const std::string& probe, const Matrix& input, const Matrix& output);

}  // namespace assay::fast
