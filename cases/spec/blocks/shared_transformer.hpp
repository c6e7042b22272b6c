// SharedTransformerShape: a transformer block that several layers call, each with a projection of its own (zamba,
// zamba2; models.md B12).
//
//     u = rms_norm([h ; e0]);  a = rms_norm(attention(u));  T = linear(feed_forward(a));  e0 the embedded tokens
//
// No residual connection inside; the layer adds T to the input of its mixer's norm and not to the residual stream.
//
// weights  the block's once, under its own prefix: input_layernorm [2H], self_attn.*, pre_ff_layernorm [H],
//          feed_forward.*, and below those the adapters of every call site (zamba2); a call site's linear [H, H] under
//          the prefix of its layer
// probes   shared_norm [2H], attn.*, ff_norm [H], ff.*, shared_out [H] = T; states of attn, each call site its own
#pragma once

#include <cstdint>
#include <string>

#include "cases/spec/blocks/attention.hpp"
#include "cases/spec/blocks/feed_forward.hpp"
#include "cases/spec/blocks/tables.hpp"

namespace assay {

struct SharedTransformerShape {
  AttentionShape attention;       // in_width 2H
  FeedForwardShape feed_forward;  // in_width H
  double epsilon = 0;             // of both norms
};

// The block. `prefix` ends with a dot: "model.layers.2.shared_transf.".
void describe_weights(WeightTable& table, const std::string& prefix, const SharedTransformerShape& shape);
// Adapters of call site `ordinal`, under the prefix of the block it calls; none where the shape has no rank.
void describe_adapters(WeightTable& table, const std::string& prefix, int64_t ordinal,
                       const SharedTransformerShape& shape);
// linear of one call site. `prefix` is the layer's: "model.layers.7.".
void describe_call_site(WeightTable& table, const std::string& prefix, const SharedTransformerShape& shape);
// `probe` is the calling layer's: "layers.7.".
void describe_probes(ProbeTable& table, const std::string& probe, int64_t layer, const SharedTransformerShape& shape);

}  // namespace assay
