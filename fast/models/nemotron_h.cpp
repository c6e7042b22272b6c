// Nemotron-H (models.md M10): one mixer a layer, h += mixer(rms_norm(h)); then rms_norm and a head of its own.
//
// mixer    Mamba-2, grouped-query attention without positions, feed-forward (squared ReLU), or routed experts and a
//          shared one beside them
#include "cases/spec/models/nemotron_h.hpp"

#include <utility>

#include "fast/blocks/shared_expert.hpp"
#include "fast/blocks/size_limits.hpp"
#include "fast/models/hybrid_network.hpp"

namespace assay::fast {

std::unique_ptr<Network> make_nemotron_h(const ModelConfig& config, Weights& weights);
void check_nemotron_h(const ModelConfig& config);

namespace {

using Kind = NemotronHFields::Layer;

Branch routed_branch(Weights& weights, const std::string& prefix, const NemotronHFields& fields) {
  const SharedExpertShape shape{fields.experts, fields.shared};
  const SharedExpertWeights own{experts_weights(weights, prefix, shape.experts),
                                feed_forward_weights(weights, prefix + "shared_experts.", shape.shared)};
  Branch branch;
  branch.run = [=](Pass& pass, const BranchPlace& at) {
    Scratch scratch(pass.scratch);
    const Matrix routed = pass.buffer(at.output.columns, "experts output");
    experts_and_shared(pass, shape, own, at.probe + "ff.", at.input, routed, at.output);
    pass.probes.add(at.probe + "ff.out", at.output);
    scratch.close();
  };
  return branch;
}

Branch branch_of(Kind kind, Weights& weights, const std::string& prefix, const NemotronHFields& fields) {
  switch (kind) {
    case Kind::kMamba:
      return mixer_branch(weights, prefix, fields.mixer);
    case Kind::kAttention:
      return attention_branch(weights, prefix, fields.attention);
    case Kind::kFeedForward:
      return feed_forward_branch(weights, prefix, fields.feed_forward);
    case Kind::kExperts:
      break;
  }
  return routed_branch(weights, prefix, fields);
}

}  // namespace

std::unique_ptr<Network> make_nemotron_h(const ModelConfig& config, Weights& weights) {
  const NemotronHFields fields = nemotron_h_fields(config);
  HybridModel model{.vocabulary = fields.vocab_size,
                    .ends = token_ends(weights, "backbone.embeddings.weight"),
                    .norm_f = weights.at("backbone.norm_f.weight"),
                    .norm = {fields.layer_norm_epsilon}};
  for (const Kind kind : fields.layers) {
    const std::string prefix = "backbone.layers." + std::to_string(model.layers.size()) + ".";
    const Branch mixer = branch_of(kind, weights, prefix + "mixer.", fields);
    model.layers.push_back({{weights.at(prefix + "norm.weight"), "norm", mixer, "out"}});
  }
  return make_hybrid_network(std::move(model));
}

void check_nemotron_h(const ModelConfig& config) {
  const NemotronHFields fields = nemotron_h_fields(config);
  check_sizes(config.id(), fields.mixer);
  check_sizes(config.id(), fields.attention);
  check_sizes(config.id(), fields.experts);
}

}  // namespace assay::fast
