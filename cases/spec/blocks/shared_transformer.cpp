#include "cases/spec/blocks/shared_transformer.hpp"

namespace assay {

void describe_weights(WeightTable& table, const std::string& prefix, const SharedTransformerShape& shape) {
  table.push_back({prefix + "input_layernorm.weight", {shape.attention.in_width}, Role::kNorm, 1, {}});
  describe_weights(table, prefix + "self_attn.", shape.attention);
  table.push_back({prefix + "pre_ff_layernorm.weight", {shape.attention.hidden_size}, Role::kNorm, 1, {}});
  describe_weights(table, prefix + "feed_forward.", shape.feed_forward);
}

void describe_adapters(WeightTable& table, const std::string& prefix, int64_t ordinal,
                       const SharedTransformerShape& shape) {
  describe_adapters(table, prefix + "self_attn.", ordinal, shape.attention);
  describe_adapters(table, prefix + "feed_forward.", ordinal, shape.feed_forward);
}

void describe_call_site(WeightTable& table, const std::string& prefix, const SharedTransformerShape& shape) {
  const int64_t H = shape.attention.hidden_size;
  describe_linear(table, prefix + "linear", H, H, Role::kInProj, false);
}

void describe_probes(ProbeTable& table, const std::string& probe, int64_t layer, const SharedTransformerShape& shape) {
  table.add(probe + "shared_norm", {shape.attention.in_width}, "rms_norm", layer);
  describe_probes(table, probe + "attn.", layer, shape.attention);
  table.add(probe + "ff_norm", {shape.attention.hidden_size}, "rms_norm", layer);
  describe_probes(table, probe + "ff.", layer, shape.feed_forward);
  table.add(probe + "shared_out", {shape.attention.hidden_size}, "linear", layer);
}

}  // namespace assay
