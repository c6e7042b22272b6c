// Backbone: embedding, layers of h += mixer(rms_norm(h)), final norm and head.
//
// The addition of one layer and the norm of the next are one kernel: after a mixer, the norm that follows (of the next
// layer, or the final one) writes the residual stream and its norm together.
//
// probes  embed; layers.{l}.norm, the mixer's own, layers.{l}.out; norm_f; logits (always)
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "fast/blocks/pass.hpp"
#include "fast/blocks/weights.hpp"

namespace assay::fast {

struct BackboneWeights {
  Weight embeddings;          // [V, H]
  std::vector<Weight> norms;  // [H], one a layer
  Weight norm_f;              // [H]
  Weight head;                // [V, H]; the embeddings where they are tied
};

BackboneWeights backbone_weights(const Weights& weights, int64_t layers);

// (pass, layer, input [T, H], output [T, H])
using Mixer = std::function<void(Pass&, int64_t, const Matrix&, const Matrix&)>;

void run_backbone(Pass& pass, const BackboneWeights& weights, double epsilon, const Mixer& mixer);

}  // namespace assay::fast
