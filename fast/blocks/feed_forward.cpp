#include "fast/blocks/feed_forward.hpp"

#include "fast/kernels/feed_forward.hpp"

namespace assay::fast {

FeedForwardWeights feed_forward_weights(const Weights& weights, const std::string& prefix,
                                        const FeedForwardShape& shape, int64_t adapter) {
  FeedForwardWeights part;
  const auto read = [&](const std::string& name, Weight& weight, Weight& bias) {
    weight = weights.at(prefix + name + ".weight");
    bias = weights.optional(prefix + name + ".bias");
  };
  if (shape.is_gated || shape.is_fused) read(shape.gate_name, part.gate, part.gate_bias);
  if (!shape.is_fused) read(shape.up_name, part.up, part.up_bias);
  read(shape.down_name, part.down, part.down_bias);
  if (shape.adapter_rank > 0)
    part.adapter = fast::adapter(weights, prefix + shape.gate_name + "_adapter_list." + std::to_string(adapter) + ".");
  return part;
}

void feed_forward(Pass& pass, const FeedForwardShape& shape, const FeedForwardWeights& weights,
                  const std::string& probe, const Matrix& input, const Matrix& output) {
  Scratch scratch(pass.scratch);
  FeedForwardParams<float> p;
  const auto projected = [&](const Weight& weight, const Weight& bias) {
    const Matrix y = pass.buffer(weight.shape[0], probe + "act");
    project(pass, input, weight, bias, y);
    return y;
  };
  Matrix gate, up;
  if (shape.is_fused) {
    const Matrix both = projected(weights.gate, weights.gate_bias);
    add_adapter(pass, input, weights.adapter, both);
    gate = both.slice(0, shape.width);
    up = both.slice(shape.width, shape.width);
  } else if (shape.is_gated) {
    gate = projected(weights.gate, weights.gate_bias);
    up = projected(weights.up, weights.up_bias);
  } else {
    gate = projected(weights.up, weights.up_bias);
  }
  const Matrix active = pass.buffer(shape.width, probe + "act");
  p.gate = gate.data;
  p.gate_stride = gate.stride;
  p.up = up.data;
  p.up_stride = up.stride;
  p.y = active.data;
  p.rows = input.rows;
  p.width = shape.width;
  p.multiplier = shape.is_gated ? static_cast<float>(shape.gate_multiplier) : 1;
  p.activation = static_cast<ActivationKind>(shape.activation);
  feed_forward(p, pass.context.stream());
  pass.context.record(feed_forward_id(p));
  pass.probes.add(probe + "act", active);

  project(pass, active, weights.down, weights.down_bias, output);
  if (shape.down_multiplier != 1) scale(pass, output, shape.down_multiplier, output);
  pass.probes.add(probe + "down_proj", output);
  scratch.close();
}

}  // namespace assay::fast
