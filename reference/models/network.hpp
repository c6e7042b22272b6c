// Network: a family's forward pass. It holds the shapes of its blocks; weights and states are handed to each call.
#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <string>
#include <vector>

#include "cases/spec/model_config.hpp"
#include "reference/blocks/layer_state.hpp"
#include "reference/pass.hpp"
#include "reference/weight_store.hpp"

namespace assay::reference {

class Network {
 public:
  virtual ~Network() = default;
  // States before the first column, one entry a layer: zeros, and no columns of keys and values
  // (reference/blocks/initial_state.hpp).
  virtual std::vector<LayerState> initial_states(int64_t rows) const = 0;
  // ids int64 [B, L], the columns that follow those the states have seen -> logits [B, L, V]. Updates states.
  virtual at::Tensor forward(const at::Tensor& ids, const WeightStore& weights, std::vector<LayerState>& states,
                             const Pass& pass) const = 0;
  virtual int64_t vocabulary() const = 0;
};

// Families in reference/models/models.def.
std::vector<std::string> network_names();
// UnsupportedError naming the known families; InputError for bad fields.
std::unique_ptr<Network> make_network(const ModelConfig& config);

}  // namespace assay::reference
