#include "reference/models/zamba2.hpp"

#include <string>

#include "reference/blocks/initial_state.hpp"
#include "reference/blocks/mamba2_mixer.hpp"
#include "reference/blocks/norm.hpp"
#include "reference/blocks/shared_transformer.hpp"
#include "reference/blocks/token_ends.hpp"

namespace assay::reference {

namespace {
std::string layer_name(int64_t l) { return "layers." + std::to_string(l) + "."; }
}  // namespace

std::vector<LayerState> Zamba2::initial_states(int64_t rows) const {
  std::vector<LayerState> states(fields_.is_hybrid.size());
  for (size_t l = 0; l < states.size(); ++l) {
    initial_state(states[l], rows, fields_.mixer);
    if (fields_.is_hybrid[l]) initial_state(states[l], rows, fields_.shared.attention);
  }
  return states;
}

at::Tensor Zamba2::shared(const at::Tensor& h, const at::Tensor& e0, int64_t l, const WeightStore& weights,
                          LayerState& state, const Pass& pass) const {
  const int64_t ordinal = fields_.ordinal(l);
  const std::string owner = "model." + layer_name(fields_.first_layer_of_block(ordinal));
  return shared_transformer(h, e0, {weights, owner + "shared_transformer.", layer_name(l)},
                            {weights, "model." + layer_name(l), layer_name(l)}, fields_.shared, state, pass, ordinal);
}

at::Tensor Zamba2::forward(const at::Tensor& ids, const WeightStore& weights, std::vector<LayerState>& states,
                           const Pass& pass) const {
  const std::string embedding = "model.embed_tokens.weight";
  const at::Tensor e0 = embed(ids, weights, embedding, pass);
  at::Tensor h = e0;
  for (size_t index = 0; index < states.size(); ++index) {
    const auto l = static_cast<int64_t>(index);
    const std::string name = layer_name(l);
    const bool is_hybrid = fields_.is_hybrid[index];
    const at::Tensor input = is_hybrid ? h + shared(h, e0, l, weights, states[index], pass) : h;
    const Place place{weights, "model." + name + (is_hybrid ? "mamba_decoder." : ""), name};
    const at::Tensor n = norm(input, place, "input_layernorm", "norm", fields_.rms_norm_eps, pass);
    const Place mixer{weights, place.prefix + "mamba.", name + "mixer."};
    h = pass.keep(name + "out", h + mamba2_mixer(n, mixer, fields_.mixer, states[index], pass));
  }
  h = norm(h, {weights, "model.", ""}, "final_layernorm", "norm_f", fields_.rms_norm_eps, pass);
  return logits(h, weights, embedding, pass);
}

}  // namespace assay::reference
