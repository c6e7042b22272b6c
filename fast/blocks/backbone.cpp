#include "fast/blocks/backbone.hpp"

#include "fast/blocks/residual_stream.hpp"

namespace assay::fast {

BackboneWeights backbone_weights(const Weights& weights, int64_t layers) {
  BackboneWeights backbone;
  backbone.ends = token_ends(weights, "backbone.embeddings.weight");
  for (int64_t layer = 0; layer < layers; ++layer)
    backbone.norms.push_back(weights.at("backbone.layers." + std::to_string(layer) + ".norm.weight"));
  backbone.norm_f = weights.at("backbone.norm_f.weight");
  return backbone;
}

void run_backbone(Pass& pass, const BackboneWeights& weights, double epsilon, const Mixer& mixer) {
  ResidualStream h(pass, embed(pass, weights.ends), {epsilon});
  const Matrix mixed = pass.buffer(weights.norm_f.shape[0], "mixer output");
  for (size_t l = 0; l < weights.norms.size(); ++l) {
    const std::string layer = "layers." + std::to_string(l) + ".";
    mixer(pass, static_cast<int64_t>(l), h.normed(weights.norms[l], layer + "norm"), mixed);
    h.add(mixed, layer + "out");
  }
  logits(pass, h.normed(weights.norm_f, "norm_f"), weights.ends);
}

}  // namespace assay::fast
