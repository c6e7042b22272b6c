#include "cases/spec/blocks/experts.hpp"

#include <fmt/format.h>

namespace assay {

void describe_weights(WeightTable& table, const std::string& prefix, const ExpertsShape& shape) {
  const int64_t E = shape.count, F = shape.width, X = shape.expert_width(), H = shape.hidden_size;
  table.push_back({prefix + shape.router_name, {E, H}, Role::kRouter, H, {}, shape.keeps_router_float32});
  if (shape.has_selection_bias)
    table.push_back({prefix + shape.bias_name, {E}, Role::kSelectionBias, 1, {}, /*keeps_float32=*/true});
  if (shape.latent > 0) {
    describe_linear(table, prefix + "fc1_latent_proj", X, H, Role::kInProj, shape.has_latent_bias);
    describe_linear(table, prefix + "fc2_latent_proj", H, X, Role::kInProj, shape.has_latent_bias);
  }
  if (shape.is_stacked) {
    table.push_back({prefix + shape.gate_name, {E, shape.is_gated ? 2 * F : F, X}, Role::kInProj, X, {}});
    table.push_back({prefix + shape.down_name, {E, X, F}, Role::kOutProj, F, {}});
    return;
  }
  for (int64_t e = 0; e < E; ++e) {
    const std::string expert = fmt::format("{}experts.{}.", prefix, e);
    if (shape.is_gated) describe_linear(table, expert + shape.gate_name, F, X, Role::kInProj, false);
    describe_linear(table, expert + shape.up_name, F, X, Role::kInProj, false);
    describe_linear(table, expert + shape.down_name, X, F, Role::kOutProj, false);
  }
}

void describe_probes(ProbeTable& table, const std::string& probe, int64_t layer, const ExpertsShape& shape) {
  table.add(probe + "router", {shape.count}, "linear", layer);
  table.add_sparse(probe + "routing", {shape.count}, "router", layer);
  table.add(probe + "experts", {shape.hidden_size}, "experts", layer);
}

}  // namespace assay
