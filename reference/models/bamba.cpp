#include "reference/models/bamba.hpp"

#include <string>

#include "reference/blocks/attention.hpp"
#include "reference/blocks/feed_forward.hpp"
#include "reference/blocks/initial_state.hpp"
#include "reference/blocks/mamba2_mixer.hpp"
#include "reference/blocks/norm.hpp"
#include "reference/blocks/token_ends.hpp"

namespace assay::reference {

std::vector<LayerState> Bamba::initial_states(int64_t rows) const {
  std::vector<LayerState> states(fields_.is_attention.size());
  for (size_t l = 0; l < states.size(); ++l) {
    if (fields_.is_attention[l])
      initial_state(states[l], rows, fields_.attention);
    else
      initial_state(states[l], rows, fields_.mixer);
  }
  return states;
}

at::Tensor Bamba::forward(const at::Tensor& ids, const WeightStore& weights, std::vector<LayerState>& states,
                          const Pass& pass) const {
  const double epsilon = fields_.rms_norm_eps;
  at::Tensor h = embed(ids, weights, "model.embed_tokens.weight", pass);
  for (size_t l = 0; l < states.size(); ++l) {
    const std::string layer = "layers." + std::to_string(l) + ".";
    const Place place{weights, "model." + layer, layer};

    at::Tensor x = norm(h, place, "input_layernorm", "norm", epsilon, pass);
    x = fields_.is_attention[l]
            ? attention_block(x, place.inside("self_attn.", "attn."), fields_.attention, states[l], pass)
            : mamba2_mixer(x, place.inside("mamba.", "mixer."), fields_.mixer, states[l], pass);
    h = pass.keep(layer + "mixed", h + x);

    x = norm(h, place, "pre_ff_layernorm", "ff_norm", epsilon, pass);
    x = feed_forward(x, place.inside("feed_forward.", "ff."), fields_.feed_forward, pass);
    h = pass.keep(layer + "out", h + x);
  }
  h = norm(h, {weights, "model.", ""}, "final_layernorm", "norm_f", epsilon, pass);
  return logits(h, weights, fields_.tie_word_embeddings ? "model.embed_tokens.weight" : "lm_head.weight", pass);
}

}  // namespace assay::reference
