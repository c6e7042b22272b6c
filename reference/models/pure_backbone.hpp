// The forward pass of a pure recurrent model: h += mixer(rms_norm(h)), L times; then rms_norm and the head.
#pragma once

#include <string>
#include <vector>

#include "reference/blocks/norm.hpp"
#include "reference/blocks/token_ends.hpp"
#include "reference/models/network.hpp"

namespace assay::reference {

// mixer(normed, place, state) -> [B, L, H]; one layer for each state.
template <class Mixer>
at::Tensor pure_backbone(const at::Tensor& ids, const WeightStore& weights, std::vector<LayerState>& states,
                         const Pass& pass, double epsilon, bool is_tied, const Mixer& mixer) {
  at::Tensor h = embed(ids, weights, "backbone.embeddings.weight", pass);
  for (size_t l = 0; l < states.size(); ++l) {
    const std::string layer = "layers." + std::to_string(l) + ".";
    const Place place{weights, "backbone." + layer, layer};
    const Place inside{weights, place.prefix + "mixer.", place.probe + "mixer."};
    h = pass.keep(layer + "out", h + mixer(norm(h, place, "norm", "norm", epsilon, pass), inside, states[l]));
  }
  h = norm(h, {weights, "backbone.", ""}, "norm_f", "norm_f", epsilon, pass);
  return logits(h, weights, is_tied ? "backbone.embeddings.weight" : "lm_head.weight", pass);
}

}  // namespace assay::reference
