#include "reference/blocks/feed_forward.hpp"

#include <string>

#include "reference/blocks/adapter.hpp"
#include "reference/ops/activations.hpp"
#include "reference/ops/linear.hpp"

namespace assay::reference {

at::Tensor feed_forward(const at::Tensor& x, const Place& place, const FeedForwardShape& shape, const Pass& pass,
                        int64_t adapter) {
  const auto project = [&](const at::Tensor& input, const std::string& name) {
    return pass.rounded(reference::linear(input, place.weight(name + ".weight"), place.find(name + ".bias")));
  };

  at::Tensor gate, up;
  if (shape.is_fused) {
    at::Tensor both = project(x, shape.gate_name);
    if (shape.adapter_rank > 0)
      both = pass.rounded(
          both + adapter_of(x, place, shape.gate_name + "_adapter_list." + std::to_string(adapter) + ".", pass));
    const std::vector<at::Tensor> halves = both.split(shape.width, -1);
    gate = halves[0];
    up = halves[1];
  } else {
    if (shape.is_gated) gate = project(x, shape.gate_name);
    up = project(x, shape.up_name);
  }
  if (shape.is_gated && shape.gate_multiplier != 1) gate = pass.rounded(gate * shape.gate_multiplier);
  const at::Tensor active = shape.is_gated ? activate(gate, shape.activation) * up : activate(up, shape.activation);
  const at::Tensor down = project(pass.keep(place.probe + "act", active), shape.down_name);
  return pass.keep(place.probe + "down_proj", shape.down_multiplier == 1 ? down : down * shape.down_multiplier);
}

}  // namespace assay::reference
