// GraniteMoeHybrid (models.md M6): Mamba-2 layers, some of them attention layers, each followed by routed experts and a
// shared SwiGLU; a multiplier on the embedding, on every addition to the residual stream, and a divisor of the logits.
//
//     h += residual_multiplier * {mamba2_mixer | attention}(rms_norm(h))
//     h += residual_multiplier * (experts(n) + shared(n)), n = rms_norm(h);  L times; rms_norm; head / logits_scaling
#include "cases/spec/models/granitemoehybrid.hpp"

#include <utility>

#include "fast/blocks/shared_expert.hpp"
#include "fast/blocks/size_limits.hpp"
#include "fast/models/hybrid_network.hpp"

namespace assay::fast {

std::unique_ptr<Network> make_granitemoehybrid(const ModelConfig& config, Weights& weights);
void check_granitemoehybrid(const ModelConfig& config);

namespace {

// Without experts the shared part stands alone.
Branch widening_branch(Weights& weights, const std::string& prefix, const GraniteMoeHybridFields& fields) {
  const SharedExpertShape shape{fields.experts, fields.shared};
  SharedExpertWeights own;
  if (fields.has_experts()) own.experts = experts_weights(weights, prefix + "block_sparse_moe.", shape.experts);
  own.shared = feed_forward_weights(weights, prefix + "shared_mlp.", shape.shared);
  Branch branch;
  branch.run = [shape, own, has_experts = fields.has_experts()](Pass& pass, const BranchPlace& at) {
    if (has_experts)
      experts_and_shared(pass, shape, own, at.probe + "ff.", at.input, at.workspace[0], at.output);
    else
      feed_forward(pass, shape.shared, own.shared, at.probe + "ff.shared.", at.input, at.output);
  };
  return branch;
}

}  // namespace

std::unique_ptr<Network> make_granitemoehybrid(const ModelConfig& config, Weights& weights) {
  const GraniteMoeHybridFields fields = granitemoehybrid_fields(config);
  HybridModel model{.vocabulary = fields.vocab_size,
                    .ends = token_ends(weights, "model.embed_tokens.weight"),
                    .norm_f = weights.at("model.norm.weight"),
                    .norm = {fields.rms_norm_eps},
                    .embedding_multiplier = fields.embedding_multiplier,
                    .logits_multiplier = 1 / fields.logits_scaling,
                    .residual_multiplier = fields.residual_multiplier,
                    .workspace = {"experts output"}};
  for (size_t l = 0; l < fields.is_attention.size(); ++l) {
    const std::string prefix = "model.layers." + std::to_string(l) + ".";
    const Branch mixer = fields.is_attention[l] ? attention_branch(weights, prefix + "self_attn.", fields.attention)
                                                : mixer_branch(weights, prefix + "mamba.", fields.mixer);
    const Branch widened = widening_branch(weights, prefix, fields);
    model.layers.push_back({{weights.at(prefix + "input_layernorm.weight"), "norm", mixer, "mixed"},
                            {weights.at(prefix + "post_attention_layernorm.weight"), "ff_norm", widened, "out"}});
  }
  return make_hybrid_network(std::move(model));
}

void check_granitemoehybrid(const ModelConfig& config) {
  const GraniteMoeHybridFields fields = granitemoehybrid_fields(config);
  check_sizes(config.id(), fields.mixer);
  check_sizes(config.id(), fields.attention);
  check_sizes(config.id(), fields.experts);
}

}  // namespace assay::fast
