// Branch: what a layer adds to its residual stream, one of the blocks with the weights of that layer. A hybrid model is
// a list of layers of such branches (hybrid_network.hpp).
//
// probes  those of the block, under {place.probe}mixer., attn. or ff.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "fast/blocks/attention.hpp"
#include "fast/blocks/delta_mixer.hpp"
#include "fast/blocks/experts.hpp"
#include "fast/blocks/feed_forward.hpp"
#include "fast/blocks/mamba2_mixer.hpp"
#include "fast/blocks/mamba_mixer.hpp"
#include "fast/blocks/pass.hpp"
#include "fast/blocks/short_conv.hpp"
#include "fast/blocks/state_shapes.hpp"
#include "fast/blocks/weights.hpp"

namespace assay::fast {

// Where in a pass a branch runs.
struct BranchPlace {
  int64_t layer = 0;
  std::string probe;              // "layers.3."
  Matrix input;                   // [T, H], the normed stream; a mixer may zero its padded rows
  Matrix output;                  // [T, H], what will be added
  std::vector<Matrix> workspace;  // [T, H] each, those that the model asks for (HybridModel::workspace)
};

struct Branch {
  std::function<void(Pass&, const BranchPlace&)> run;
  LayerStateShape state;  // empty: nothing is carried from call to call
};

// prefix: of the block's weights, "model.layers.3.self_attn."
Branch attention_branch(Weights& weights, const std::string& prefix, const AttentionShape& shape);

Branch mixer_branch(Weights& weights, const std::string& prefix, const DeltaMixerShape& shape);
Branch mixer_branch(Weights& weights, const std::string& prefix, const Mamba2MixerShape& shape);
Branch mixer_branch(Weights& weights, const std::string& prefix, const MambaMixerShape& shape);
Branch mixer_branch(Weights& weights, const std::string& prefix, const ShortConvShape& shape);

Branch feed_forward_branch(Weights& weights, const std::string& prefix, const FeedForwardShape& shape);
Branch experts_branch(Weights& weights, const std::string& prefix, const ExpertsShape& shape);

}  // namespace assay::fast
