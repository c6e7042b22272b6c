#include "reference/models/nemotron_h.hpp"

#include <string>

#include "cases/spec/error.hpp"
#include "reference/blocks/attention.hpp"
#include "reference/blocks/experts.hpp"
#include "reference/blocks/feed_forward.hpp"
#include "reference/blocks/initial_state.hpp"
#include "reference/blocks/mamba2_mixer.hpp"
#include "reference/blocks/norm.hpp"
#include "reference/blocks/token_ends.hpp"

namespace assay::reference {

namespace {

using Layer = NemotronHFields::Layer;

at::Tensor mix(Layer layer, const at::Tensor& h, const std::string& prefix, const std::string& name,
               const WeightStore& weights, const NemotronHFields& fields, LayerState& state, const Pass& pass) {
  switch (layer) {
    case Layer::kMamba:
      return mamba2_mixer(h, {weights, prefix, name + "mixer."}, fields.mixer, state, pass);
    case Layer::kAttention:
      return attention_block(h, {weights, prefix, name + "attn."}, fields.attention, state, pass);
    case Layer::kFeedForward:
      return feed_forward(h, {weights, prefix, name + "ff."}, fields.feed_forward, pass);
    case Layer::kExperts: {
      const at::Tensor routed = experts(h, {weights, prefix, name + "ff."}, fields.experts, pass);
      const at::Tensor shared =
          feed_forward(h, {weights, prefix + "shared_experts.", name + "ff.shared."}, fields.shared, pass);
      return pass.keep(name + "ff.out", routed + shared);
    }
  }
  throw InputError(name, "is of no known kind");
}

}  // namespace

std::vector<LayerState> NemotronH::initial_states(int64_t rows) const {
  std::vector<LayerState> states(fields_.layers.size());
  for (size_t l = 0; l < states.size(); ++l) {
    if (fields_.layers[l] == Layer::kMamba) initial_state(states[l], rows, fields_.mixer);
    if (fields_.layers[l] == Layer::kAttention) initial_state(states[l], rows, fields_.attention);
  }
  return states;
}

at::Tensor NemotronH::forward(const at::Tensor& ids, const WeightStore& weights, std::vector<LayerState>& states,
                              const Pass& pass) const {
  at::Tensor h = embed(ids, weights, "backbone.embeddings.weight", pass);
  for (size_t l = 0; l < states.size(); ++l) {
    const std::string layer = "layers." + std::to_string(l) + ".";
    const Place place{weights, "backbone." + layer, layer};
    const at::Tensor n = norm(h, place, "norm", "norm", fields_.layer_norm_epsilon, pass);
    h = pass.keep(layer + "out",
                  h + mix(fields_.layers[l], n, place.prefix + "mixer.", layer, weights, fields_, states[l], pass));
  }
  h = norm(h, {weights, "backbone.", ""}, "norm_f", "norm_f", fields_.layer_norm_epsilon, pass);
  return logits(h, weights, "lm_head.weight", pass);
}

}  // namespace assay::reference
