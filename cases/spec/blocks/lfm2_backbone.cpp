#include "cases/spec/blocks/lfm2_backbone.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace assay {

namespace {

constexpr double kDefaultTheta = 1'000'000;

std::vector<bool> layer_kinds(const FieldReader& read, int64_t layers, bool has_indices) {
  const std::vector<std::string> words = read.words("layer_types", layers, {"conv", "full_attention"});
  if (words.empty() && !has_indices) read.refuse("layer_types", fmt::format("{} words", layers));
  std::vector<bool> from_words;
  for (const std::string& word : words) from_words.push_back(word == "full_attention");
  if (!has_indices || !read.has("full_attn_idxs"))
    return words.empty() ? std::vector<bool>(static_cast<size_t>(layers), true) : from_words;

  std::vector<bool> from_indices(static_cast<size_t>(layers), false);
  for (const int64_t index : read.sizes("full_attn_idxs", 0, layers - 1))
    from_indices[static_cast<size_t>(index)] = true;
  if (!words.empty() && from_words != from_indices) read.refuse("full_attn_idxs", "the layers that layer_types names");
  return from_indices;
}

AttentionShape read_attention(const FieldReader& read, int64_t hidden_size, double epsilon) {
  AttentionShape shape;
  shape.in_width = shape.hidden_size = hidden_size;
  shape.heads = read.size("num_attention_heads", 32);
  shape.kv_heads = read.size("num_key_value_heads", 8);
  if (shape.heads % shape.kv_heads != 0)
    read.refuse("num_key_value_heads", fmt::format("a divisor of num_attention_heads = {}", shape.heads));
  if (!read.has("head_dim") && hidden_size < shape.heads)
    read.refuse("num_attention_heads", fmt::format("at most hidden_size = {} where there is no head_dim", hidden_size));
  shape.head_dim = read.size("head_dim", hidden_size / shape.heads);
  shape.scale = 1 / std::sqrt(static_cast<double>(shape.head_dim));
  shape.head_norm = AttentionShape::HeadNorm::kPlain;
  shape.epsilon = epsilon;
  shape.rotary = read_rotary(read, shape.head_dim, kDefaultTheta, 1);
  if (shape.rotary.width != shape.head_dim)
    read.refuse(read.has("rope_parameters") ? "rope_parameters" : "partial_rotary_factor",
                fmt::format("whole heads of {} lanes to be rotated", shape.head_dim));
  shape.out_name = "out_proj";
  shape.q_norm_name = "q_layernorm";
  shape.k_norm_name = "k_layernorm";
  return shape;
}

}  // namespace

Lfm2Backbone read_lfm2_backbone(const FieldReader& read, int64_t default_hidden_size, bool has_indices) {
  Lfm2Backbone model;
  model.vocab_size = read.size("vocab_size", 65536, 2);
  model.hidden_size = read.size("hidden_size", default_hidden_size);
  model.norm_eps = read.positive("norm_eps", 1e-5);
  // The old name wins.
  model.tie_word_embeddings = read.flag("tie_embedding", read.flag("tie_word_embeddings", true));
  model.is_attention = layer_kinds(read, read.layers(32), has_indices);
  model.dense_layers = model.layers();
  model.attention = read_attention(read, model.hidden_size, model.norm_eps);
  model.conv.hidden_size = model.hidden_size;
  model.conv.conv_kernel = read.size("conv_L_cache", 3, 2, 4);
  model.conv.has_bias = read.flag("conv_bias", false);
  model.conv.out_scale = model.tie_word_embeddings ? 2.0 : 1.0;
  model.dense.in_width = model.dense.hidden_size = model.hidden_size;
  model.dense.gate_name = "w1";
  model.dense.up_name = "w3";
  model.dense.down_name = "w2";
  return model;
}

void check_lfm2_backbone(const FieldReader& read, const Lfm2Backbone& model) {
  read.check_flags({"use_cache"});
  read.size("max_position_embeddings", 128'000);
  // The name of early files; not read any more, so another value than the one in use misleads.
  if (read.has("theta") && read.value("theta") != model.attention.rotary.theta)
    read.refuse("theta", fmt::format("the rope_theta in use, {}", model.attention.rotary.theta));

  const auto H = static_cast<double>(model.hidden_size), F = static_cast<double>(model.dense.width),
             hd = static_cast<double>(model.attention.head_dim), E = static_cast<double>(model.experts.count),
             Fe = static_cast<double>(model.experts.width),
             heads = static_cast<double>(model.attention.heads + model.attention.kv_heads);
  const double mixer = std::max(2 * heads * hd * H, (4 * H + 10) * H), routed = E * (3 * Fe + 1) * H;
  read.check_elements(2 * static_cast<double>(model.vocab_size) * H, mixer + std::max(3 * F * H, routed) + 2 * H,
                      model.layers());
}

WeightTable lfm2_weights(const Lfm2Backbone& model) {
  const int64_t V = model.vocab_size, H = model.hidden_size;
  WeightTable table;
  table.push_back({"model.embed_tokens.weight", {V, H}, Role::kEmbedding, H, {}});
  for (int64_t l = 0; l < model.layers(); ++l) {
    const std::string layer = fmt::format("model.layers.{}.", l);
    table.push_back({layer + "operator_norm.weight", {H}, Role::kNorm, 1, {}});
    if (model.is_attention[static_cast<size_t>(l)])
      describe_weights(table, layer + "self_attn.", model.attention);
    else
      describe_weights(table, layer + "conv.", model.conv);
    table.push_back({layer + "ffn_norm.weight", {H}, Role::kNorm, 1, {}});
    if (model.is_routed(l))
      describe_weights(table, layer + "feed_forward.", model.experts);
    else
      describe_weights(table, layer + "feed_forward.", model.dense);
  }
  table.push_back({"model.embedding_norm.weight", {H}, Role::kNorm, 1, {}});
  if (!model.tie_word_embeddings) table.push_back({"lm_head.weight", {V, H}, Role::kHead, H, {}});
  return table;
}

std::vector<ProbeSpec> lfm2_probes(const Lfm2Backbone& model) {
  const int64_t H = model.hidden_size;
  ProbeTable table;
  table.add("embed", {H}, "embedding", -1);
  for (int64_t l = 0; l < model.layers(); ++l) {
    const std::string layer = fmt::format("layers.{}.", l);
    table.add(layer + "norm", {H}, "rms_norm", l);
    if (model.is_attention[static_cast<size_t>(l)])
      describe_probes(table, layer + "attn.", l, model.attention);
    else
      describe_probes(table, layer + "mixer.", l, model.conv);
    table.add(layer + "mixed", {H}, "residual", l);
    table.add(layer + "ff_norm", {H}, "rms_norm", l);
    if (model.is_routed(l))
      describe_probes(table, layer + "ff.", l, model.experts);
    else
      describe_probes(table, layer + "ff.", l, model.dense);
    table.add(layer + "out", {H}, "residual", l);
  }
  table.add("norm_f", {H}, "rms_norm", -1);
  table.add("logits", {model.vocab_size}, "linear", -1);
  return table.take();
}

std::vector<std::string> lfm2_ops(const Lfm2Backbone& model) {
  std::vector<std::string> ops = {"embedding", "rms_norm", "linear"};
  const auto is_attention = std::find(model.is_attention.begin(), model.is_attention.end(), true);
  const auto is_conv = std::find(model.is_attention.begin(), model.is_attention.end(), false);
  if (is_conv != model.is_attention.end()) ops.insert(ops.end(), {"causal_conv1d", "gate"});
  if (is_attention != model.is_attention.end()) ops.insert(ops.end(), {"rotary", "attention"});
  if (model.dense_layers > 0) ops.emplace_back("feed_forward");
  if (model.dense_layers < model.layers()) ops.insert(ops.end(), {"router", "experts"});
  return ops;
}

}  // namespace assay
