#include "reference/models/granitemoehybrid.hpp"

#include <string>

#include "reference/blocks/attention.hpp"
#include "reference/blocks/experts.hpp"
#include "reference/blocks/feed_forward.hpp"
#include "reference/blocks/initial_state.hpp"
#include "reference/blocks/mamba2_mixer.hpp"
#include "reference/blocks/norm.hpp"
#include "reference/blocks/token_ends.hpp"

namespace assay::reference {

std::vector<LayerState> GraniteMoeHybrid::initial_states(int64_t rows) const {
  std::vector<LayerState> states(fields_.is_attention.size());
  for (size_t l = 0; l < states.size(); ++l) {
    if (fields_.is_attention[l])
      initial_state(states[l], rows, fields_.attention);
    else
      initial_state(states[l], rows, fields_.mixer);
  }
  return states;
}

at::Tensor GraniteMoeHybrid::forward(const at::Tensor& ids, const WeightStore& weights, std::vector<LayerState>& states,
                                     const Pass& pass) const {
  const double epsilon = fields_.rms_norm_eps, multiplier = fields_.residual_multiplier;
  at::Tensor h = embed(ids, weights, "model.embed_tokens.weight", pass, fields_.embedding_multiplier);
  for (size_t l = 0; l < states.size(); ++l) {
    const std::string layer = "layers." + std::to_string(l) + ".";
    const Place place{weights, "model." + layer, layer};

    at::Tensor x = norm(h, place, "input_layernorm", "norm", epsilon, pass);
    x = fields_.is_attention[l]
            ? attention_block(x, place.inside("self_attn.", "attn."), fields_.attention, states[l], pass)
            : mamba2_mixer(x, place.inside("mamba.", "mixer."), fields_.mixer, states[l], pass);
    h = pass.keep(layer + "mixed", h + x * multiplier);

    const at::Tensor n = norm(h, place, "post_attention_layernorm", "ff_norm", epsilon, pass);
    x = fields_.has_experts() ? experts(n, place.inside("block_sparse_moe.", "ff."), fields_.experts, pass)
                              : at::zeros_like(n);
    x = x + feed_forward(n, place.inside("shared_mlp.", "ff.shared."), fields_.shared, pass);
    h = pass.keep(layer + "out", h + x * multiplier);
  }
  h = norm(h, {weights, "model.", ""}, "norm", "norm_f", epsilon, pass);
  return logits(h, weights, fields_.tie_word_embeddings ? "model.embed_tokens.weight" : "lm_head.weight", pass,
                1 / fields_.logits_scaling);
}

}  // namespace assay::reference
