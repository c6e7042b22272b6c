// Network: a family's forward pass over weights that are on the device. fast/models.def lists the families.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cases/spec/model_config.hpp"
#include "fast/blocks/pass.hpp"
#include "fast/blocks/state_shapes.hpp"
#include "fast/blocks/weights.hpp"

namespace assay::fast {

class Network {
 public:
  virtual ~Network() = default;
  virtual int64_t vocabulary() const = 0;
  virtual std::vector<LayerStateShape> state_shapes() const = 0;  // one a layer
  // Fills pass.probes, "logits" always; continues and writes pass.states.
  virtual void forward(Pass& pass) const = 0;
};

std::vector<std::string> network_names();
// UnsupportedError: no fast path for config.model, or a size outside what the kernels take. weights outlive the result.
std::unique_ptr<Network> make_network(const ModelConfig& config, Weights& weights);
// The same size checks before any weight is read.
void check_network(const ModelConfig& config);

}  // namespace assay::fast
