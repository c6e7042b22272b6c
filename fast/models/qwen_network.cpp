#include "fast/models/qwen_network.hpp"

#include <utility>

#include "fast/blocks/shared_expert.hpp"
#include "fast/blocks/size_limits.hpp"
#include "fast/models/hybrid_network.hpp"

namespace assay::fast {

namespace {

Branch routed_branch(Weights& weights, const std::string& prefix, const QwenBackbone& fields) {
  const SharedExpertShape shape{fields.experts, fields.shared};
  const SharedExpertWeights own{experts_weights(weights, prefix, shape.experts),
                                feed_forward_weights(weights, prefix + "shared_expert.", shape.shared),
                                weights.at(prefix + "shared_expert_gate.weight")};
  Branch branch;
  branch.run = [=](Pass& pass, const BranchPlace& at) {
    experts_and_gated_shared(pass, shape, own, at.probe + "ff.", at.input, at.output);
  };
  return branch;
}

}  // namespace

std::unique_ptr<Network> make_qwen_network(const QwenBackbone& fields, Weights& weights) {
  HybridModel model{.vocabulary = fields.vocab_size,
                    .ends = token_ends(weights, fields.embedding()),
                    .norm_f = weights.at(fields.prefix + "norm.weight"),
                    .norm = {fields.rms_norm_eps, /*is_zero_centred=*/true}};
  for (size_t l = 0; l < fields.is_attention.size(); ++l) {
    const std::string prefix = fields.prefix + "layers." + std::to_string(l) + ".", mlp = prefix + "mlp.";
    const Branch mixer = fields.is_attention[l] ? attention_branch(weights, prefix + "self_attn.", fields.attention)
                                                : mixer_branch(weights, prefix + "linear_attn.", fields.mixer);
    const Branch widened =
        fields.is_routed[l] ? routed_branch(weights, mlp, fields) : feed_forward_branch(weights, mlp, fields.dense);
    model.layers.push_back({{weights.at(prefix + "input_layernorm.weight"), "norm", mixer, "mixed"},
                            {weights.at(prefix + "post_attention_layernorm.weight"), "ff_norm", widened, "out"}});
  }
  return make_hybrid_network(std::move(model));
}

void check_qwen_network(const std::string& config, const QwenBackbone& fields) {
  check_sizes(config, fields.mixer);
  check_sizes(config, fields.attention);
  check_sizes(config, fields.experts);
}

}  // namespace assay::fast
