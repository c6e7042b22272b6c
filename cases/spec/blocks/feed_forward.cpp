#include "cases/spec/blocks/feed_forward.hpp"

#include <fmt/format.h>

namespace assay {

void describe_weights(WeightTable& table, const std::string& prefix, const FeedForwardShape& shape) {
  const int64_t F = shape.width, in = shape.in_width;
  if (shape.is_gated)
    describe_linear(table, prefix + shape.gate_name, shape.is_fused ? 2 * F : F, in, Role::kInProj, shape.has_bias);
  if (!shape.is_fused) describe_linear(table, prefix + shape.up_name, F, in, Role::kInProj, shape.has_bias);
  describe_linear(table, prefix + shape.down_name, shape.hidden_size, F, Role::kOutProj, shape.has_bias);
}

void describe_adapters(WeightTable& table, const std::string& prefix, int64_t ordinal, const FeedForwardShape& shape) {
  if (shape.adapter_rank == 0) return;
  const std::string adapter = fmt::format("{}{}_adapter_list.{}.", prefix, shape.gate_name, ordinal);
  describe_linear(table, adapter + "0", shape.adapter_rank, shape.in_width, Role::kAdapter, false);
  describe_linear(table, adapter + "1", 2 * shape.width, shape.adapter_rank, Role::kAdapter, false);
}

void describe_probes(ProbeTable& table, const std::string& probe, int64_t layer, const FeedForwardShape& shape) {
  if (shape.activation == Activation::kRelu2)
    table.add_sparse(probe + "act", {shape.width}, "feed_forward", layer);
  else
    table.add(probe + "act", {shape.width}, "feed_forward", layer);
  table.add(probe + "down_proj", {shape.hidden_size}, "linear", layer);
}

}  // namespace assay
