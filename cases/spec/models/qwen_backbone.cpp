#include "cases/spec/models/qwen_backbone.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace assay {

namespace {

// layer_types, or else every full_attention_interval-th layer.
std::vector<bool> read_layer_kinds(const FieldReader& read, int64_t layers) {
  const int64_t interval = read.size("full_attention_interval", 4);
  const auto words = read.words("layer_types", layers, {"linear_attention", "full_attention"});
  std::vector<bool> is_attention;
  for (int64_t l = 0; l < layers; ++l)
    is_attention.push_back(words.empty() ? (l + 1) % interval == 0 : words[static_cast<size_t>(l)] == "full_attention");
  return is_attention;
}

DeltaMixerShape read_mixer(const FieldReader& read, int64_t hidden_size, double epsilon) {
  DeltaMixerShape shape;
  shape.hidden_size = hidden_size;
  shape.key_heads = read.size("linear_num_key_heads", 16);
  shape.value_heads = read.size("linear_num_value_heads", 32);
  if (shape.value_heads % shape.key_heads != 0)
    read.refuse("linear_num_value_heads", fmt::format("a multiple of linear_num_key_heads = {}", shape.key_heads));
  shape.key_dim = read.size("linear_key_head_dim", 128);
  shape.value_dim = read.size("linear_value_head_dim", 128);
  shape.conv_kernel = read.size("linear_conv_kernel_dim", 4, 2, 4);
  shape.epsilon = epsilon;
  return shape;
}

AttentionShape read_attention(const FieldReader& read, const QwenDefaults& defaults, int64_t hidden_size,
                              double epsilon) {
  AttentionShape shape;
  shape.in_width = shape.hidden_size = hidden_size;
  shape.heads = read.size("num_attention_heads", 16);
  shape.kv_heads = read.size("num_key_value_heads", defaults.num_key_value_heads);
  if (shape.heads % shape.kv_heads != 0)
    read.refuse("num_key_value_heads", fmt::format("a divisor of num_attention_heads = {}", shape.heads));
  shape.head_dim = read.size("head_dim", 256);
  shape.scale = 1 / std::sqrt(static_cast<double>(shape.head_dim));
  shape.has_bias = read.flag("attention_bias", false);
  shape.head_norm = AttentionShape::HeadNorm::kZeroCentred;
  shape.epsilon = epsilon;
  shape.has_output_gate = true;
  shape.rotary = read_rotary(read, shape.head_dim, 10000, 0.25);
  return shape;
}

FeedForwardShape feed_forward_of(int64_t hidden_size, int64_t width) {
  FeedForwardShape shape;
  shape.in_width = shape.hidden_size = hidden_size;
  shape.width = width;
  return shape;
}

ExpertsShape read_experts(const FieldReader& read, const QwenDefaults& defaults, int64_t hidden_size) {
  ExpertsShape shape;
  shape.hidden_size = hidden_size;
  shape.width = read.size("moe_intermediate_size", 512);
  shape.count = read.size("num_experts", defaults.num_experts);
  shape.chosen = read.size("num_experts_per_tok", defaults.num_experts_per_tok);
  if (shape.chosen > shape.count)
    read.refuse("num_experts_per_tok", fmt::format("at most num_experts = {}", shape.count));
  return shape;
}

void describe_routed(WeightTable& table, const std::string& prefix, const QwenBackbone& model) {
  describe_weights(table, prefix, model.experts);
  describe_weights(table, prefix + "shared_expert.", model.shared);
  describe_linear(table, prefix + "shared_expert_gate", 1, model.hidden_size, Role::kInProj, false);
}

void describe_routed(ProbeTable& table, const std::string& probe, int64_t layer, const QwenBackbone& model) {
  describe_probes(table, probe, layer, model.experts);
  describe_probes(table, probe + "shared.", layer, model.shared);
  table.add(probe + "shared.gate", {1}, "linear", layer);
  table.add(probe + "out", {model.hidden_size}, "residual", layer);
}

bool has_any(const std::vector<bool>& kinds, bool kind) {
  return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
}

}  // namespace

QwenBackbone read_qwen_backbone(const FieldReader& read, const QwenDefaults& defaults) {
  read.check_word("hidden_act", "silu");
  read.check_flags({"use_cache", "output_router_logits"});
  QwenBackbone model;
  model.vocab_size = read.size("vocab_size", defaults.vocab_size, 2);
  model.hidden_size = read.size("hidden_size", defaults.hidden_size);
  model.num_hidden_layers = read.layers(defaults.num_hidden_layers);
  model.rms_norm_eps = read.positive("rms_norm_eps", 1e-6);
  model.tie_word_embeddings = read.flag("tie_word_embeddings", false);
  model.is_attention = read_layer_kinds(read, model.num_hidden_layers);
  model.is_routed.assign(static_cast<size_t>(model.num_hidden_layers), defaults.num_experts > 0);
  model.mixer = read_mixer(read, model.hidden_size, model.rms_norm_eps);
  model.attention = read_attention(read, defaults, model.hidden_size, model.rms_norm_eps);
  if (defaults.intermediate_size > 0)
    model.dense = feed_forward_of(model.hidden_size, read.size("intermediate_size", defaults.intermediate_size));
  if (defaults.num_experts > 0) {
    model.experts = read_experts(read, defaults, model.hidden_size);
    model.shared = feed_forward_of(model.hidden_size, read.size("shared_expert_intermediate_size", 512));
  }
  return model;
}

void check_elements(const FieldReader& read, const QwenBackbone& model) {
  const auto real = [](int64_t size) { return static_cast<double>(size); };
  const DeltaMixerShape& mixer = model.mixer;
  const AttentionShape& attention = model.attention;
  // keys() and conv_dim() are products of two sizes: they fit an int64, a further product need not.
  const double H = real(model.hidden_size), C = real(mixer.conv_dim()), values = real(mixer.values());
  const double delta = (C + 2 * values + 2 * real(mixer.value_heads)) * H + 12 * C + values * real(mixer.key_dim);
  const double heads = real(3 * attention.heads + 2 * attention.kv_heads) * real(attention.head_dim) * H;
  const double dense = 3 * real(model.dense.width) * H;
  const double routed =
      (real(model.experts.count) * (3 * real(model.experts.width) + 1) + 3 * real(model.shared.width)) * H;
  read.check_elements(2 * real(model.vocab_size) * H, delta + heads + dense + routed, model.num_hidden_layers);
}

WeightTable describe_weights(const QwenBackbone& model) {
  const int64_t V = model.vocab_size, H = model.hidden_size;
  WeightTable table;
  table.push_back({model.embedding(), {V, H}, Role::kEmbedding, H, {}});
  for (size_t l = 0; l < model.is_attention.size(); ++l) {
    const std::string layer = fmt::format("{}layers.{}.", model.prefix, l);
    table.push_back({layer + "input_layernorm.weight", {H}, Role::kZeroNorm, 1, {}});
    if (model.is_attention[l])
      describe_weights(table, layer + "self_attn.", model.attention);
    else
      describe_weights(table, layer + "linear_attn.", model.mixer);
    table.push_back({layer + "post_attention_layernorm.weight", {H}, Role::kZeroNorm, 1, {}});
    if (model.is_routed[l])
      describe_routed(table, layer + "mlp.", model);
    else
      describe_weights(table, layer + "mlp.", model.dense);
  }
  table.push_back({model.prefix + "norm.weight", {H}, Role::kZeroNorm, 1, {}});
  if (!model.tie_word_embeddings) table.push_back({"lm_head.weight", {V, H}, Role::kHead, H, {}});
  return table;
}

std::vector<ProbeSpec> describe_probes(const QwenBackbone& model) {
  const int64_t H = model.hidden_size;
  ProbeTable table;
  table.add("embed", {H}, "embedding", -1);
  for (int64_t l = 0; l < model.num_hidden_layers; ++l) {
    const std::string layer = fmt::format("layers.{}.", l);
    const auto index = static_cast<size_t>(l);
    table.add(layer + "norm", {H}, "rms_norm", l);
    if (model.is_attention[index])
      describe_probes(table, layer + "attn.", l, model.attention);
    else
      describe_probes(table, layer + "mixer.", l, model.mixer);
    table.add(layer + "mixed", {H}, "residual", l);
    table.add(layer + "ff_norm", {H}, "rms_norm", l);
    if (model.is_routed[index])
      describe_routed(table, layer + "ff.", l, model);
    else
      describe_probes(table, layer + "ff.", l, model.dense);
    table.add(layer + "out", {H}, "residual", l);
  }
  table.add("norm_f", {H}, "rms_norm", -1);
  table.add("logits", {model.vocab_size}, "linear", -1);
  return table.take();
}

std::vector<std::string> describe_ops(const QwenBackbone& model) {
  std::vector<std::string> ops = {"embedding", "rms_norm", "linear", "feed_forward"};  // the shared expert is dense
  if (has_any(model.is_attention, false))
    ops.insert(ops.end(), {"causal_conv1d", "gated_delta_rule", "gated_rms_norm"});
  if (has_any(model.is_attention, true)) ops.insert(ops.end(), {"rotary", "attention", "gate"});
  if (has_any(model.is_routed, true)) ops.insert(ops.end(), {"router", "experts"});
  return ops;
}

}  // namespace assay
