// Backbone of the pure recurrent models (mamba, mamba2, falcon_mamba): h += mixer(rms_norm(h)), L times; then rms_norm
// and the head, the embedding where tied.
//
// probes  embed; layers.{l}.{norm, mixer.*, out}; norm_f; logits (always)
#pragma once

#include <functional>
#include <vector>

#include "fast/blocks/pass.hpp"
#include "fast/blocks/token_ends.hpp"
#include "fast/blocks/weights.hpp"

namespace assay::fast {

struct BackboneWeights {
  TokenEnds ends;
  std::vector<Weight> norms;  // [H], one a layer
  Weight norm_f;              // [H]
};

BackboneWeights backbone_weights(const Weights& weights, int64_t layers);

// (pass, layer, input [T, H], output [T, H])
using Mixer = std::function<void(Pass&, int64_t, const Matrix&, const Matrix&)>;

void run_backbone(Pass& pass, const BackboneWeights& weights, double epsilon, const Mixer& mixer);

}  // namespace assay::fast
