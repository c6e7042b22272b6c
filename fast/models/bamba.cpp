// Bamba (models.md M4): Mamba-2 layers, some of them attention layers, each followed by a SwiGLU.
//
//     h += {mamba2_mixer | attention}(rms_norm(h));  h += feed_forward(rms_norm(h));  L times; rms_norm; head
#include "cases/spec/models/bamba.hpp"

#include <utility>

#include "fast/blocks/size_limits.hpp"
#include "fast/models/hybrid_network.hpp"

namespace assay::fast {

std::unique_ptr<Network> make_bamba(const ModelConfig& config, Weights& weights);
void check_bamba(const ModelConfig& config);

std::unique_ptr<Network> make_bamba(const ModelConfig& config, Weights& weights) {
  const BambaFields fields = bamba_fields(config);
  HybridModel model{.vocabulary = fields.vocab_size,
                    .ends = token_ends(weights, "model.embed_tokens.weight"),
                    .norm_f = weights.at("model.final_layernorm.weight"),
                    .norm = {fields.rms_norm_eps}};
  for (size_t l = 0; l < fields.is_attention.size(); ++l) {
    const std::string prefix = "model.layers." + std::to_string(l) + ".";
    const Branch mixer = fields.is_attention[l] ? attention_branch(weights, prefix + "self_attn.", fields.attention)
                                                : mixer_branch(weights, prefix + "mamba.", fields.mixer);
    const Branch widened = feed_forward_branch(weights, prefix + "feed_forward.", fields.feed_forward);
    model.layers.push_back({{weights.at(prefix + "input_layernorm.weight"), "norm", mixer, "mixed"},
                            {weights.at(prefix + "pre_ff_layernorm.weight"), "ff_norm", widened, "out"}});
  }
  return make_hybrid_network(std::move(model));
}

void check_bamba(const ModelConfig& config) {
  const BambaFields fields = bamba_fields(config);
  check_sizes(config.id(), fields.mixer);
  check_sizes(config.id(), fields.attention);
}

}  // namespace assay::fast
