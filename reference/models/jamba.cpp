#include "reference/models/jamba.hpp"

#include <string>

#include "reference/blocks/attention.hpp"
#include "reference/blocks/experts.hpp"
#include "reference/blocks/feed_forward.hpp"
#include "reference/blocks/initial_state.hpp"
#include "reference/blocks/mamba_mixer.hpp"
#include "reference/blocks/norm.hpp"
#include "reference/blocks/token_ends.hpp"

namespace assay::reference {

std::vector<LayerState> Jamba::initial_states(int64_t rows) const {
  std::vector<LayerState> states(fields_.layers.size());
  for (size_t l = 0; l < states.size(); ++l) {
    if (fields_.layers[l].is_attention)
      initial_state(states[l], rows, fields_.attention);
    else
      initial_state(states[l], rows, fields_.mixer);
  }
  return states;
}

at::Tensor Jamba::forward(const at::Tensor& ids, const WeightStore& weights, std::vector<LayerState>& states,
                          const Pass& pass) const {
  at::Tensor h = embed(ids, weights, "model.embed_tokens.weight", pass);
  for (size_t l = 0; l < states.size(); ++l) {
    const std::string probe = "layers." + std::to_string(l) + ".", prefix = "model." + probe;
    const Place layer{weights, prefix, probe}, feed{weights, prefix + "feed_forward.", probe + "ff."};

    const at::Tensor x = norm(h, layer, "input_layernorm", "norm", fields_.epsilon, pass);
    const at::Tensor mixed =
        fields_.layers[l].is_attention
            ? attention_block(x, {weights, prefix + "self_attn.", probe + "attn."}, fields_.attention, states[l], pass)
            : mamba_mixer(x, {weights, prefix + "mamba.", probe + "mixer."}, fields_.mixer, states[l], pass);
    h = pass.keep(probe + "mixed", h + mixed);

    const at::Tensor y = norm(h, layer, "pre_ff_layernorm", "ff_norm", fields_.epsilon, pass);
    h = pass.keep(probe + "out", h + (fields_.layers[l].is_routed ? experts(y, feed, fields_.experts, pass)
                                                                  : feed_forward(y, feed, fields_.feed_forward, pass)));
  }
  h = norm(h, {weights, "model.", ""}, "final_layernorm", "norm_f", fields_.epsilon, pass);
  return logits(h, weights, fields_.tie_word_embeddings ? "model.embed_tokens.weight" : "lm_head.weight", pass);
}

}  // namespace assay::reference
