#include "reference/models/lfm2.hpp"

#include <string>

#include "reference/blocks/attention.hpp"
#include "reference/blocks/experts.hpp"
#include "reference/blocks/feed_forward.hpp"
#include "reference/blocks/initial_state.hpp"
#include "reference/blocks/norm.hpp"
#include "reference/blocks/short_conv.hpp"
#include "reference/blocks/token_ends.hpp"

namespace assay::reference {

std::vector<LayerState> Lfm2::initial_states(int64_t rows) const {
  std::vector<LayerState> states(fields_.is_attention.size());
  for (size_t l = 0; l < states.size(); ++l) {
    if (fields_.is_attention[l])
      initial_state(states[l], rows, fields_.attention);
    else
      initial_state(states[l], rows, fields_.conv);
  }
  return states;
}

at::Tensor Lfm2::forward(const at::Tensor& ids, const WeightStore& weights, std::vector<LayerState>& states,
                         const Pass& pass) const {
  const std::string embedding = "model.embed_tokens.weight";
  at::Tensor h = embed(ids, weights, embedding, pass);
  for (size_t l = 0; l < states.size(); ++l) {
    const std::string layer = "layers." + std::to_string(l) + ".", prefix = "model." + layer;
    const Place place{weights, prefix, layer}, feed_forward_place{weights, prefix + "feed_forward.", layer + "ff."};

    const at::Tensor n = norm(h, place, "operator_norm", "norm", fields_.norm_eps, pass);
    const at::Tensor mixed =
        fields_.is_attention[l]
            ? attention_block(n, {weights, prefix + "self_attn.", layer + "attn."}, fields_.attention, states[l], pass)
            : short_conv(n, {weights, prefix + "conv.", layer + "mixer."}, fields_.conv, states[l], pass);
    h = pass.keep(layer + "mixed", h + mixed);

    const at::Tensor m = norm(h, place, "ffn_norm", "ff_norm", fields_.norm_eps, pass);
    const at::Tensor widened = fields_.is_routed(static_cast<int64_t>(l))
                                   ? experts(m, feed_forward_place, fields_.experts, pass)
                                   : feed_forward(m, feed_forward_place, fields_.dense, pass);
    h = pass.keep(layer + "out", h + widened);
  }
  h = norm(h, {weights, "model.", ""}, "embedding_norm", "norm_f", fields_.norm_eps, pass);
  return logits(h, weights, fields_.tie_word_embeddings ? embedding : "lm_head.weight", pass);
}

}  // namespace assay::reference
