#include "cases/spec/blocks/short_conv.hpp"

namespace assay {

void describe_weights(WeightTable& table, const std::string& prefix, const ShortConvShape& shape) {
  const int64_t H = shape.hidden_size;
  describe_linear(table, prefix + "in_proj", 3 * H, H, Role::kInProj, shape.has_bias);
  table.push_back({prefix + "conv.weight", {H, 1, shape.conv_kernel}, Role::kConv, shape.conv_kernel, {}});
  if (shape.has_bias) table.push_back({prefix + "conv.bias", {H}, Role::kConvBias, 1, {}});
  describe_linear(table, prefix + "out_proj", H, H, Role::kOutProj, shape.has_bias, {{0, H, shape.out_scale}});
}

void describe_probes(ProbeTable& table, const std::string& probe, int64_t layer, const ShortConvShape& shape) {
  const int64_t H = shape.hidden_size;
  table.add(probe + "in_proj", {3 * H}, "linear", layer);
  table.add(probe + "conv1d", {H}, "causal_conv1d", layer);
  table.add(probe + "gate", {H}, "gate", layer);
  table.add(probe + "out_proj", {H}, "linear", layer);
  table.add_state(probe + "conv_state", {H, shape.conv_kernel}, "causal_conv1d", layer);
}

}  // namespace assay
