#include "reference/models/falcon_h1.hpp"

#include <string>

#include "reference/blocks/attention.hpp"
#include "reference/blocks/feed_forward.hpp"
#include "reference/blocks/initial_state.hpp"
#include "reference/blocks/mamba2_mixer.hpp"
#include "reference/blocks/norm.hpp"
#include "reference/blocks/token_ends.hpp"

namespace assay::reference {

std::vector<LayerState> FalconH1::initial_states(int64_t rows) const {
  std::vector<LayerState> states(static_cast<size_t>(fields_.num_hidden_layers));
  for (LayerState& state : states) {
    initial_state(state, rows, fields_.mixer);
    initial_state(state, rows, fields_.attention);
  }
  return states;
}

at::Tensor FalconH1::layer(const at::Tensor& h, const Place& place, LayerState& state, const Pass& pass) const {
  const Place mixer{place.weights, place.prefix + "mamba.", place.probe + "mixer."};
  const Place attention{place.weights, place.prefix + "self_attn.", place.probe + "attn."};
  const Place feed{place.weights, place.prefix + "feed_forward.", place.probe + "ff."};

  const at::Tensor n = norm(h, place, "input_layernorm", "norm", fields_.rms_norm_eps, pass);
  const at::Tensor m = pass.rounded(mamba2_mixer(n, mixer, fields_.mixer, state, pass) * fields_.ssm_out_multiplier);
  const at::Tensor a_in = pass.rounded(n * fields_.attention_in_multiplier);
  const at::Tensor a =
      pass.rounded(attention_block(a_in, attention, fields_.attention, state, pass) * fields_.attention_out_multiplier);
  const at::Tensor mixed = pass.keep(place.probe + "mixed", h + (m + a));

  const at::Tensor n2 = norm(mixed, place, "pre_ff_layernorm", "ff_norm", fields_.rms_norm_eps, pass);
  return pass.keep(place.probe + "out", mixed + feed_forward(n2, feed, fields_.feed_forward, pass));
}

at::Tensor FalconH1::forward(const at::Tensor& ids, const WeightStore& weights, std::vector<LayerState>& states,
                             const Pass& pass) const {
  const std::string embedding = "model.embed_tokens.weight";
  at::Tensor h = embed(ids, weights, embedding, pass, fields_.embedding_multiplier);
  for (size_t l = 0; l < states.size(); ++l) {
    const std::string name = "layers." + std::to_string(l) + ".";
    h = layer(h, {weights, "model." + name, name}, states[l], pass);
  }
  h = norm(h, {weights, "model.", ""}, "final_layernorm", "norm_f", fields_.rms_norm_eps, pass);
  return logits(h, weights, fields_.tie_word_embeddings ? embedding : "lm_head.weight", pass,
                fields_.lm_head_multiplier);
}

}  // namespace assay::reference
