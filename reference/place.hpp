// Place: where a block finds its weights and under which names its probes go.
#pragma once

#include <ATen/ATen.h>

#include <string>

#include "reference/weight_store.hpp"

namespace assay::reference {

struct Place {
  const WeightStore& weights;
  std::string prefix;  // "model.layers.2.self_attn."
  std::string probe;   // "layers.2.attn."

  at::Tensor weight(const std::string& name) const { return weights.at(prefix + name); }
  // Undefined where the model has none: a bias that the config leaves out.
  at::Tensor find(const std::string& name) const { return weights.find(prefix + name); }
  // A block of a layer: inside("self_attn.", "attn.").
  Place inside(const std::string& block, const std::string& block_probe) const {
    return {weights, prefix + block, probe + block_probe};
  }
};

}  // namespace assay::reference
