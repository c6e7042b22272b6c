#include "cases/spec/blocks/attention.hpp"

#include <fmt/format.h>

#include <cmath>

namespace assay {

AttentionShape read_grouped_attention(const FieldReader& read, int64_t hidden_size, int64_t default_heads,
                                      std::optional<int64_t> default_kv_heads) {
  AttentionShape shape;
  shape.in_width = shape.hidden_size = hidden_size;
  shape.heads = read.size("num_attention_heads", default_heads);
  const bool is_as_many = read.is_null("num_key_value_heads") || !default_kv_heads;
  shape.kv_heads = read.size("num_key_value_heads", is_as_many ? shape.heads : *default_kv_heads);
  if (shape.heads % shape.kv_heads != 0)
    read.refuse("num_key_value_heads", fmt::format("a divisor of num_attention_heads = {}", shape.heads));
  if (!read.has("head_dim") && hidden_size % shape.heads != 0)
    read.refuse("num_attention_heads", fmt::format("a divisor of hidden_size = {}, or a head_dim", hidden_size));
  shape.head_dim = read.size("head_dim", hidden_size / shape.heads);
  shape.scale = 1 / std::sqrt(static_cast<double>(shape.head_dim));
  shape.has_bias = read.flag("attention_bias", false);
  return shape;
}

double elements_of(const AttentionShape& shape) {
  const auto hd = static_cast<double>(shape.head_dim);
  const double queries = static_cast<double>(shape.heads) * hd, keys = static_cast<double>(shape.kv_heads) * hd;
  return (2 * queries + 2 * keys) * static_cast<double>(shape.in_width) +
         queries * static_cast<double>(shape.hidden_size);
}

void describe_weights(WeightTable& table, const std::string& prefix, const AttentionShape& shape) {
  const int64_t keys = shape.kv_heads * shape.head_dim, in = shape.in_width;
  describe_linear(table, prefix + "q_proj", shape.width() * (shape.has_output_gate ? 2 : 1), in, Role::kQueryKey,
                  shape.has_bias);
  describe_linear(table, prefix + "k_proj", keys, in, Role::kQueryKey, shape.has_bias);
  describe_linear(table, prefix + "v_proj", keys, in, Role::kInProj, shape.has_bias);
  describe_linear(table, prefix + shape.out_name, shape.hidden_size, shape.width(), Role::kOutProj, shape.has_bias);
  if (shape.head_norm == AttentionShape::HeadNorm::kNone) return;
  const Role role = shape.head_norm == AttentionShape::HeadNorm::kPlain ? Role::kNorm : Role::kZeroNorm;
  table.push_back({prefix + shape.q_norm_name + ".weight", {shape.head_dim}, role, 1, {}});
  table.push_back({prefix + shape.k_norm_name + ".weight", {shape.head_dim}, role, 1, {}});
}

void describe_adapters(WeightTable& table, const std::string& prefix, int64_t ordinal, const AttentionShape& shape) {
  if (shape.adapter_rank == 0) return;
  for (const char* which : {"q", "k", "v"}) {
    const std::string adapter = fmt::format("{}linear_{}_adapter_list.{}.", prefix, which, ordinal);
    const int64_t out = which[0] == 'q' ? shape.width() : shape.kv_heads * shape.head_dim;
    describe_linear(table, adapter + "0", shape.adapter_rank, shape.in_width, Role::kAdapter, false);
    describe_linear(table, adapter + "1", out, shape.adapter_rank, Role::kAdapter, false);
  }
}

void describe_probes(ProbeTable& table, const std::string& probe, int64_t layer, const AttentionShape& shape) {
  const Shape queries = {shape.heads, shape.head_dim}, keys = {shape.kv_heads, shape.head_dim};
  const std::string op = shape.rotary.is_on() ? "rotary" : "linear";
  table.add(probe + "q", queries, op, layer);
  table.add(probe + "k", keys, op, layer);
  table.add(probe + "v", keys, "linear", layer);
  table.add(probe + "attention", queries, "attention", layer);
  if (shape.has_output_gate) table.add(probe + "gated", queries, "gate", layer);
  table.add(probe + "out_proj", {shape.hidden_size}, "linear", layer);
  table.add_growing_state(probe + "k_cache", keys, "attention", layer, probe + "k");
  table.add_growing_state(probe + "v_cache", keys, "attention", layer, probe + "v");
}

}  // namespace assay
