// Jamba (models.md M7): h += mixer or attention(rms_norm(h)); h += dense or routed feed-forward(rms_norm(h)), L times;
// then rms_norm and the head. The mixer is Mamba-1 with weighted norms of dt, B and C.
#include "cases/spec/models/jamba.hpp"

#include <utility>

#include "fast/blocks/size_limits.hpp"
#include "fast/models/hybrid_network.hpp"

namespace assay::fast {

std::unique_ptr<Network> make_jamba(const ModelConfig& config, Weights& weights);
void check_jamba(const ModelConfig& config);

std::unique_ptr<Network> make_jamba(const ModelConfig& config, Weights& weights) {
  const JambaFields fields = jamba_fields(config);
  HybridModel model{.vocabulary = fields.vocab_size,
                    .ends = token_ends(weights, "model.embed_tokens.weight"),
                    .norm_f = weights.at("model.final_layernorm.weight"),
                    .norm = {fields.epsilon}};
  for (const JambaLayer& layer : fields.layers) {
    const std::string prefix = "model.layers." + std::to_string(model.layers.size()) + ".",
                      widening = prefix + "feed_forward.";
    const Branch mixer = layer.is_attention ? attention_branch(weights, prefix + "self_attn.", fields.attention)
                                            : mixer_branch(weights, prefix + "mamba.", fields.mixer);
    const Branch widened = layer.is_routed ? experts_branch(weights, widening, fields.experts)
                                           : feed_forward_branch(weights, widening, fields.feed_forward);
    model.layers.push_back({{weights.at(prefix + "input_layernorm.weight"), "norm", mixer, "mixed"},
                            {weights.at(prefix + "pre_ff_layernorm.weight"), "ff_norm", widened, "out"}});
  }
  return make_hybrid_network(std::move(model));
}

void check_jamba(const ModelConfig& config) {
  const JambaFields fields = jamba_fields(config);
  check_sizes(config.id(), fields.mixer);
  check_sizes(config.id(), fields.attention);
  check_sizes(config.id(), fields.experts);
}

}  // namespace assay::fast
