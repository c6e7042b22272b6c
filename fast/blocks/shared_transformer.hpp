// shared_transformer: a block that several layers call, and the calling layer's projection of its output (models.md
// B12). Nothing is added inside; the caller adds the result to the input of its mixer's norm only.
//
//     u = rms_norm([h ; e0]);  a = rms_norm(attention(u));  T = linear(feed_forward(a))
//
// in      h, e0   [T, H], the residual stream and the embedded tokens
// in/out  states  key and value of the calling layer: each call site keeps its own
// out     output  T [T, H]
// probes  {probe}{shared_norm, attn.*, ff_norm, ff.*, shared_out}
// twin    reference/blocks/shared_transformer.hpp
#pragma once

#include <string>

#include "cases/spec/blocks/shared_transformer.hpp"
#include "fast/blocks/attention.hpp"
#include "fast/blocks/feed_forward.hpp"
#include "fast/blocks/pass.hpp"

namespace assay::fast {

// Of one call site.
struct SharedTransformerWeights {
  Weight input_norm;  // [2H]
  AttentionWeights attention;
  Weight feed_forward_norm;
  FeedForwardWeights feed_forward;
  Weight out;  // [H, H], the calling layer's
};

// block: "model.layers.2.shared_transf."; site: the calling layer's "model.layers.7."; ordinal: of the call site.
SharedTransformerWeights shared_transformer_weights(Weights& weights, const std::string& block, const std::string& site,
                                                    const SharedTransformerShape& shape, int64_t ordinal = 0);

// probe: the calling layer's "layers.7."
void shared_transformer(Pass& pass, const SharedTransformerShape& shape, const SharedTransformerWeights& weights,
                        const std::string& probe, int64_t layer, const Matrix& h, const Matrix& e0,
                        const Matrix& output);

}  // namespace assay::fast
