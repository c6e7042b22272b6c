#include "fast/models/layer_kinds.hpp"

namespace assay::fast {

namespace {

// A block that continues a state: its shape and its weights go with the branch.
template <auto block, class Shape, class BlockWeights>
Branch sequence_branch(const std::string& part, const Shape& shape, const BlockWeights& weights) {
  Branch branch;
  branch.run = [=](Pass& pass, const BranchPlace& at) {
    block(pass, shape, weights, at.probe + part, at.layer, at.input, at.output);
  };
  add_state(branch.state, shape);
  return branch;
}

}  // namespace

Branch attention_branch(Weights& weights, const std::string& prefix, const AttentionShape& shape) {
  return sequence_branch<attention_block>("attn.", shape, attention_weights(weights, prefix, shape));
}

Branch mixer_branch(Weights& weights, const std::string& prefix, const DeltaMixerShape& shape) {
  return sequence_branch<delta_mixer>("mixer.", shape, delta_mixer_weights(weights, prefix, shape));
}

Branch mixer_branch(Weights& weights, const std::string& prefix, const Mamba2MixerShape& shape) {
  return sequence_branch<mamba2_mixer>("mixer.", shape, mamba2_mixer_weights(weights, prefix, shape));
}

Branch mixer_branch(Weights& weights, const std::string& prefix, const MambaMixerShape& shape) {
  return sequence_branch<mamba_mixer>("mixer.", shape, mamba_mixer_weights(weights, prefix, shape));
}

Branch mixer_branch(Weights& weights, const std::string& prefix, const ShortConvShape& shape) {
  return sequence_branch<short_conv>("mixer.", shape, short_conv_weights(weights, prefix));
}

Branch feed_forward_branch(Weights& weights, const std::string& prefix, const FeedForwardShape& shape) {
  Branch branch;
  branch.run = [shape, own = feed_forward_weights(weights, prefix, shape)](Pass& pass, const BranchPlace& at) {
    feed_forward(pass, shape, own, at.probe + "ff.", at.input, at.output);
  };
  return branch;
}

Branch experts_branch(Weights& weights, const std::string& prefix, const ExpertsShape& shape) {
  Branch branch;
  branch.run = [shape, own = experts_weights(weights, prefix, shape)](Pass& pass, const BranchPlace& at) {
    experts(pass, shape, own, at.probe + "ff.", at.input, at.output);
  };
  return branch;
}

}  // namespace assay::fast
