#include "cases/spec/blocks/delta_mixer.hpp"

namespace assay {

void describe_weights(WeightTable& table, const std::string& prefix, const DeltaMixerShape& shape) {
  const int64_t H = shape.hidden_size, Hv = shape.value_heads;
  table.push_back({prefix + "dt_bias", {Hv}, Role::kDtBias, 1, {}});
  table.push_back({prefix + "A_log", {Hv}, Role::kALog, 1, {}});
  table.push_back(
      {prefix + "conv1d.weight", {shape.conv_dim(), 1, shape.conv_kernel}, Role::kConv, shape.conv_kernel, {}});
  table.push_back({prefix + "norm.weight", {shape.value_dim}, Role::kGatedNorm, 1, {}});
  describe_linear(table, prefix + "out_proj", H, shape.values(), Role::kOutProj, false);
  if (shape.is_packed) {
    describe_linear(table, prefix + "in_proj_qkvz", 2 * shape.keys() + 2 * shape.values(), H, Role::kInProj, false);
    describe_linear(table, prefix + "in_proj_ba", 2 * Hv, H, Role::kInProj, false);
    return;
  }
  describe_linear(table, prefix + "in_proj_qkv", shape.conv_dim(), H, Role::kInProj, false);
  describe_linear(table, prefix + "in_proj_z", shape.values(), H, Role::kInProj, false);
  describe_linear(table, prefix + "in_proj_b", Hv, H, Role::kInProj, false);
  describe_linear(table, prefix + "in_proj_a", Hv, H, Role::kInProj, false);
}

void describe_probes(ProbeTable& table, const std::string& probe, int64_t layer, const DeltaMixerShape& shape) {
  const int64_t Hv = shape.value_heads, dv = shape.value_dim;
  if (shape.is_packed) {
    table.add(probe + "in_proj_qkvz", {2 * shape.keys() + 2 * shape.values()}, "linear", layer);
    table.add(probe + "in_proj_ba", {2 * Hv}, "linear", layer);
  } else {
    table.add(probe + "in_proj_qkv", {shape.conv_dim()}, "linear", layer);
    table.add(probe + "in_proj_z", {shape.values()}, "linear", layer);
    table.add(probe + "in_proj_b", {Hv}, "linear", layer);
    table.add(probe + "in_proj_a", {Hv}, "linear", layer);
  }
  table.add(probe + "conv1d", {shape.conv_dim()}, "causal_conv1d", layer);
  table.add(probe + "beta", {Hv}, "gate", layer);
  table.add(probe + "g", {Hv}, "dt", layer);
  table.add(probe + "delta", {Hv, dv}, "gated_delta_rule", layer);
  table.add(probe + "norm", {Hv, dv}, "gated_rms_norm", layer);
  table.add(probe + "out_proj", {shape.hidden_size}, "linear", layer);
  table.add_state(probe + "conv_state", {shape.conv_dim(), shape.conv_kernel}, "causal_conv1d", layer);
  table.add_state(probe + "delta_state", {Hv, shape.key_dim, dv}, "gated_delta_rule", layer, Hv);
}

}  // namespace assay
