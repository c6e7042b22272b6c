#include "reference/models/zamba.hpp"

#include <string>

#include "reference/blocks/initial_state.hpp"
#include "reference/blocks/mamba_mixer.hpp"
#include "reference/blocks/norm.hpp"
#include "reference/blocks/shared_transformer.hpp"
#include "reference/blocks/token_ends.hpp"

namespace assay::reference {

std::vector<LayerState> Zamba::initial_states(int64_t rows) const {
  std::vector<LayerState> states(fields_.layers.size());
  for (size_t l = 0; l < states.size(); ++l) {
    initial_state(states[l], rows, fields_.mixer);
    if (fields_.is_hybrid(static_cast<int64_t>(l))) initial_state(states[l], rows, fields_.shared.attention);
  }
  return states;
}

at::Tensor Zamba::forward(const at::Tensor& ids, const WeightStore& weights, std::vector<LayerState>& states,
                          const Pass& pass) const {
  const at::Tensor e0 = embed(ids, weights, "model.embed_tokens.weight", pass);
  at::Tensor h = e0;
  for (size_t l = 0; l < states.size(); ++l) {
    const std::string probe = "layers." + std::to_string(l) + ".";
    const auto index = static_cast<int64_t>(l);
    const Place decoder{weights, fields_.decoder(index), probe};

    at::Tensor x = h;
    if (fields_.is_hybrid(index))
      x = h + shared_transformer(h, e0, {weights, fields_.shared_prefix(), probe}, {weights, "model." + probe, probe},
                                 fields_.shared, states[l], pass);
    x = norm(x, decoder, "input_layernorm", "norm", fields_.epsilon, pass);
    h = pass.keep(probe + "out", h + mamba_mixer(x, {weights, decoder.prefix + "mamba.", probe + "mixer."},
                                                 fields_.mixer, states[l], pass));
  }
  h = norm(h, {weights, "model.", ""}, "final_layernorm", "norm_f", fields_.epsilon, pass);
  return logits(h, weights, "model.embed_tokens.weight", pass);
}

}  // namespace assay::reference
