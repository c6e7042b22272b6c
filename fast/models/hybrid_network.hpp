// HybridNetwork: the forward pass of the models whose layers are of several kinds (bamba, falcon_h1, granitemoehybrid,
// jamba, lfm2, nemotron_h, qwen), over their list of layers.
//
//     h = embedding_multiplier * embedding
//     h += residual_multiplier * branch(norm(h)), each branch of each layer in turn
//     logits = logits_multiplier * head(norm_f(h))
//
// probes  embed; layers.{l}.: {normed_probe, the branch's own, added_probe} of each branch; norm_f; logits (always)
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fast/blocks/norm.hpp"
#include "fast/blocks/token_ends.hpp"
#include "fast/models/layer_kinds.hpp"
#include "fast/models/network.hpp"

namespace assay::fast {

// h += branch(norm(h))
struct Addition {
  Weight norm;               // [H]
  std::string normed_probe;  // the branch's input
  Branch branch;
  std::string added_probe;  // h behind it
};
using HybridLayer = std::vector<Addition>;

struct HybridModel {
  int64_t vocabulary = 0;  // V
  TokenEnds ends;
  Weight norm_f;
  NormKind norm;  // of every norm of h
  double embedding_multiplier = 1, logits_multiplier = 1;
  std::optional<double> residual_multiplier;  // an addition waits for its norm only without one (ResidualStream)
  std::vector<std::string> workspace;         // labels of the buffers that the branches of all layers share
  std::vector<HybridLayer> layers;
};

std::unique_ptr<Network> make_hybrid_network(HybridModel model);

}  // namespace assay::fast
