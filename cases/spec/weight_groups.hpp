// Weight groups: what an offloaded subject reads together and drops together. One table for subjects and runners.
//
//   layers.N               a layer
//   layers.N shared block  a block that several layers call (zamba, zamba2), under the layer whose name it bears
//   embedding
//   head                   what is left: the final norm, and the head where it is not the embedding
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cases/spec/model_config.hpp"

namespace assay {

struct WeightGroup {
  std::string name;
  std::vector<std::string> weights;  // canonical names, in the order of the model's table
  int64_t elements = 0;              // of all of them
  // How often a forward pass comes by: once, but a shared block once for each layer that calls it, and an embedding
  // that is the head twice.
  int64_t uses = 1;
};

// In the order of the model's table; every weight is in exactly one group.
std::vector<WeightGroup> weight_groups(const ModelConfig& config);

}  // namespace assay
