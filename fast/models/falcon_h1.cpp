// Falcon-H1 (models.md M5): a Mamba-2 mixer and attention side by side in every layer, then a feed-forward part.
//
//     n = rms_norm(h);  h += mixer(n) * ssm_out + attention(n * attention_in) * attention_out
//     h += feed_forward(rms_norm(h))
//
// Embedded tokens times embedding_multiplier; logits times lm_head_multiplier.
#include "cases/spec/models/falcon_h1.hpp"

#include <utility>

#include "fast/blocks/size_limits.hpp"
#include "fast/models/hybrid_network.hpp"

namespace assay::fast {

std::unique_ptr<Network> make_falcon_h1(const ModelConfig& config, Weights& weights);
void check_falcon_h1(const ModelConfig& config);

namespace {

Branch parallel_branch(Weights& weights, const std::string& prefix, const FalconH1Fields& fields) {
  Branch branch;
  branch.run = [fields, mixer = mamba2_mixer_weights(weights, prefix + "mamba.", fields.mixer),
                attention = attention_weights(weights, prefix + "self_attn.", fields.attention)](
                   Pass& pass, const BranchPlace& at) {
    const Matrix &n = at.input, &x = at.output, &attention_in = at.workspace[0], &attended = at.workspace[1];
    // Before the mixer zeroes the padded rows of n.
    scale(pass, n, fields.attention_in_multiplier, attention_in);
    mamba2_mixer(pass, fields.mixer, mixer, at.probe + "mixer.", at.layer, n, x);
    if (fields.ssm_out_multiplier != 1) scale(pass, x, fields.ssm_out_multiplier, x);
    attention_block(pass, fields.attention, attention, at.probe + "attn.", at.layer, attention_in, attended);
    add_scaled(pass, attended, fields.attention_out_multiplier, x, x);
  };
  add_state(branch.state, fields.mixer);
  add_state(branch.state, fields.attention);
  return branch;
}

}  // namespace

std::unique_ptr<Network> make_falcon_h1(const ModelConfig& config, Weights& weights) {
  const FalconH1Fields fields = falcon_h1_fields(config);
  HybridModel model{.vocabulary = fields.vocab_size,
                    .ends = token_ends(weights, "model.embed_tokens.weight"),
                    .norm_f = weights.at("model.final_layernorm.weight"),
                    .norm = {fields.rms_norm_eps},
                    .embedding_multiplier = fields.embedding_multiplier,
                    .logits_multiplier = fields.lm_head_multiplier,
                    .workspace = {"attention input", "attention output"}};
  for (int64_t l = 0; l < fields.num_hidden_layers; ++l) {
    const std::string prefix = "model.layers." + std::to_string(l) + ".";
    const Branch mixed = parallel_branch(weights, prefix, fields);
    const Branch widened = feed_forward_branch(weights, prefix + "feed_forward.", fields.feed_forward);
    model.layers.push_back({{weights.at(prefix + "input_layernorm.weight"), "norm", mixed, "mixed"},
                            {weights.at(prefix + "pre_ff_layernorm.weight"), "ff_norm", widened, "out"}});
  }
  return make_hybrid_network(std::move(model));
}

void check_falcon_h1(const ModelConfig& config) {
  const FalconH1Fields fields = falcon_h1_fields(config);
  check_sizes(config.id(), fields.mixer);
  check_sizes(config.id(), fields.attention);
}

}  // namespace assay::fast
