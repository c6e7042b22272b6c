// Network: a family's forward pass over weights that are on the device. fast/models.def lists the families.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cases/spec/model_config.hpp"
#include "fast/blocks/pass.hpp"
#include "fast/blocks/weights.hpp"

namespace assay::fast {

// Shapes of one layer's states, after the batch dimension.
struct LayerStateShape {
  Shape conv;  // [C, K]
  Shape ssm;   // [I, N] or [Nh, P, N]
};

class Network {
 public:
  virtual ~Network() = default;
  virtual int64_t vocabulary() const = 0;
  virtual int64_t layers() const = 0;
  virtual LayerStateShape state_shape() const = 0;  // the same in every layer
  virtual std::string scan_op() const = 0;          // "selective_scan", "ssd"
  // Fills pass.probes, "logits" always; continues and writes pass.states.
  virtual void forward(Pass& pass) const = 0;
};

std::vector<std::string> network_names();
// UnsupportedError: no fast path for config.model, or a size outside what the kernels take. weights outlive the result.
std::unique_ptr<Network> make_network(const ModelConfig& config, const Weights& weights);
// The same size checks before any weight is read.
void check_network(const ModelConfig& config);

}  // namespace assay::fast
