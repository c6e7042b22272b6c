#include "fast/models/lfm2_network.hpp"

#include <utility>

#include "fast/blocks/size_limits.hpp"
#include "fast/models/hybrid_network.hpp"

namespace assay::fast {

std::unique_ptr<Network> make_lfm2_network(const Lfm2Backbone& fields, Weights& weights) {
  HybridModel model{.vocabulary = fields.vocab_size,
                    .ends = token_ends(weights, "model.embed_tokens.weight"),
                    .norm_f = weights.at("model.embedding_norm.weight"),
                    .norm = {fields.norm_eps}};
  for (int64_t l = 0; l < fields.layers(); ++l) {
    const std::string prefix = "model.layers." + std::to_string(l) + ".", widening = prefix + "feed_forward.";
    const Branch mixer = fields.is_attention[static_cast<size_t>(l)]
                             ? attention_branch(weights, prefix + "self_attn.", fields.attention)
                             : mixer_branch(weights, prefix + "conv.", fields.conv);
    const Branch widened = fields.is_routed(l) ? experts_branch(weights, widening, fields.experts)
                                               : feed_forward_branch(weights, widening, fields.dense);
    model.layers.push_back({{weights.at(prefix + "operator_norm.weight"), "norm", mixer, "mixed"},
                            {weights.at(prefix + "ffn_norm.weight"), "ff_norm", widened, "out"}});
  }
  return make_hybrid_network(std::move(model));
}

void check_lfm2_network(const std::string& config, const Lfm2Backbone& fields) {
  check_sizes(config, fields.conv);
  check_sizes(config, fields.attention);
  check_sizes(config, fields.experts);
}

}  // namespace assay::fast
