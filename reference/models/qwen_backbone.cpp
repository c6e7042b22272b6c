#include "reference/models/qwen_backbone.hpp"

#include <string>

#include "reference/blocks/attention.hpp"
#include "reference/blocks/delta_mixer.hpp"
#include "reference/blocks/experts.hpp"
#include "reference/blocks/feed_forward.hpp"
#include "reference/blocks/initial_state.hpp"
#include "reference/blocks/norm.hpp"
#include "reference/blocks/token_ends.hpp"
#include "reference/ops/linear.hpp"

namespace assay::reference {

std::vector<LayerState> QwenNetwork::initial_states(int64_t rows) const {
  std::vector<LayerState> states(model_.is_attention.size());
  for (size_t l = 0; l < states.size(); ++l) {
    if (model_.is_attention[l])
      initial_state(states[l], rows, model_.attention);
    else
      initial_state(states[l], rows, model_.mixer);
  }
  return states;
}

at::Tensor QwenNetwork::routed(const at::Tensor& x, const Place& place, const Pass& pass) const {
  const Place shared{place.weights, place.prefix + "shared_expert.", place.probe + "shared."};
  const at::Tensor chosen = experts(x, place, model_.experts, pass);
  const at::Tensor common = feed_forward(x, shared, model_.shared, pass);
  const at::Tensor gate =
      pass.keep(shared.probe + "gate", reference::linear(x, place.weight("shared_expert_gate.weight")));
  return pass.keep(place.probe + "out", chosen + at::sigmoid(gate) * common);
}

at::Tensor QwenNetwork::layer(const at::Tensor& h, size_t l, const Place& place, LayerState& state,
                              const Pass& pass) const {
  const Place mixer{place.weights, place.prefix + "linear_attn.", place.probe + "mixer."};
  const Place attention{place.weights, place.prefix + "self_attn.", place.probe + "attn."};
  const Place feed{place.weights, place.prefix + "mlp.", place.probe + "ff."};

  const at::Tensor n = zero_centred_norm(h, place, "input_layernorm", "norm", model_.rms_norm_eps, pass);
  const at::Tensor m = model_.is_attention[l] ? attention_block(n, attention, model_.attention, state, pass)
                                              : delta_mixer(n, mixer, model_.mixer, state, pass);
  const at::Tensor mixed = pass.keep(place.probe + "mixed", h + m);

  const at::Tensor n2 =
      zero_centred_norm(mixed, place, "post_attention_layernorm", "ff_norm", model_.rms_norm_eps, pass);
  const at::Tensor f = model_.is_routed[l] ? routed(n2, feed, pass) : feed_forward(n2, feed, model_.dense, pass);
  return pass.keep(place.probe + "out", mixed + f);
}

at::Tensor QwenNetwork::forward(const at::Tensor& ids, const WeightStore& weights, std::vector<LayerState>& states,
                                const Pass& pass) const {
  at::Tensor h = embed(ids, weights, model_.embedding(), pass);
  for (size_t l = 0; l < states.size(); ++l) {
    const std::string name = "layers." + std::to_string(l) + ".";
    h = layer(h, l, {weights, model_.prefix + name, name}, states[l], pass);
  }
  h = zero_centred_norm(h, {weights, model_.prefix, ""}, "norm", "norm_f", model_.rms_norm_eps, pass);
  return logits(h, weights, model_.tie_word_embeddings ? model_.embedding() : "lm_head.weight", pass);
}

}  // namespace assay::reference
