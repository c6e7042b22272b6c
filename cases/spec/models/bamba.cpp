#include "cases/spec/models/bamba.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cases/spec/model_spec.hpp"
#include "cases/spec/models/fields.hpp"

namespace assay {

namespace {

constexpr int64_t kMostLayers = 10'000;  // the tables of weights and probes have rows for each

std::vector<bool> attention_layers(const FieldReader& read) {
  const int64_t layers = read.size("num_hidden_layers", 32, 1, kMostLayers);
  std::vector<bool> is_attention(static_cast<size_t>(layers), false);
  for (const int64_t l : read.sizes("attn_layer_indices", 0, layers - 1)) {
    if (is_attention.at(static_cast<size_t>(l))) read.refuse("attn_layer_indices", "each layer once");
    is_attention.at(static_cast<size_t>(l)) = true;
  }
  return is_attention;
}

}  // namespace

BambaFields bamba_fields(const ModelConfig& config) {
  const FieldReader read(config);
  BambaFields f{};
  f.vocab_size = read.size("vocab_size", 128000, 2);
  f.hidden_size = read.size("hidden_size", 4096);
  f.rms_norm_eps = read.positive("rms_norm_eps", 1e-5);
  f.tie_word_embeddings = read.flag("tie_word_embeddings", false);
  f.is_attention = attention_layers(read);
  f.mixer = read_mamba2_mixer(read, f.hidden_size, f.rms_norm_eps);
  f.attention = read_grouped_attention(read, f.hidden_size, 32, 8);
  f.attention.rotary = read_rotary(read, f.attention.head_dim, 10000, 0.5, 0.5);
  f.feed_forward.in_width = f.feed_forward.hidden_size = f.hidden_size;
  f.feed_forward.width = read.size("intermediate_size", 14336);
  f.feed_forward.has_bias = read.flag("mlp_bias", false);
  return f;
}

namespace {

void check(const ModelConfig& config) {
  const FieldReader read(config);
  read.check_known({"model_type",
                    "architectures",
                    "torch_dtype",
                    "dtype",
                    "transformers_version",
                    "vocab_size",
                    "tie_word_embeddings",
                    "hidden_size",
                    "intermediate_size",
                    "num_hidden_layers",
                    "num_attention_heads",
                    "num_key_value_heads",
                    "head_dim",
                    "hidden_act",
                    "initializer_range",
                    "rms_norm_eps",
                    "use_cache",
                    "num_logits_to_keep",
                    "pad_token_id",
                    "bos_token_id",
                    "eos_token_id",
                    "max_position_embeddings",
                    "attention_dropout",
                    "attn_layer_indices",
                    "attn_rotary_emb",
                    "mamba_n_heads",
                    "mamba_d_head",
                    "mamba_n_groups",
                    "mamba_d_state",
                    "mamba_d_conv",
                    "mamba_expand",
                    "mamba_chunk_size",
                    "mamba_conv_bias",
                    "mamba_proj_bias",
                    "time_step_limit",
                    "z_loss_coefficient",
                    "rope_parameters",
                    "rope_scaling",
                    "rope_theta",
                    "partial_rotary_factor",
                    "attention_bias",
                    "mlp_bias"});
  read.check_word("model_type", "bamba");
  read.check_word("hidden_act", "silu");
  const BambaFields f = bamba_fields(config);
  read.check_flags({"use_cache"});
  const int64_t width = f.attention.rotary.width;
  if (read.size("attn_rotary_emb", width) != width)
    read.refuse("attn_rotary_emb", fmt::format("the rotated lanes of a head, {}", width));
  const auto H = static_cast<double>(f.hidden_size), F = static_cast<double>(f.feed_forward.width);
  read.check_elements(2 * static_cast<double>(f.vocab_size) * H,
                      std::max(elements_of(f.mixer), elements_of(f.attention)) + 3 * F * H,
                      static_cast<int64_t>(f.is_attention.size()));
}

std::vector<WeightSpec> weights(const ModelConfig& config) {
  const BambaFields f = bamba_fields(config);
  const int64_t V = f.vocab_size, H = f.hidden_size;
  WeightTable table;
  table.push_back({"model.embed_tokens.weight", {V, H}, Role::kEmbedding, H, {}});
  for (size_t l = 0; l < f.is_attention.size(); ++l) {
    const std::string layer = fmt::format("model.layers.{}.", l);
    table.push_back({layer + "input_layernorm.weight", {H}, Role::kNorm, 1, {}});
    if (f.is_attention[l])
      describe_weights(table, layer + "self_attn.", f.attention);
    else
      describe_weights(table, layer + "mamba.", f.mixer);
    table.push_back({layer + "pre_ff_layernorm.weight", {H}, Role::kNorm, 1, {}});
    describe_weights(table, layer + "feed_forward.", f.feed_forward);
  }
  table.push_back({"model.final_layernorm.weight", {H}, Role::kNorm, 1, {}});
  if (!f.tie_word_embeddings) table.push_back({"lm_head.weight", {V, H}, Role::kHead, H, {}});
  return table;
}

std::vector<ProbeSpec> probes(const ModelConfig& config) {
  const BambaFields f = bamba_fields(config);
  const int64_t H = f.hidden_size;
  ProbeTable table;
  table.add("embed", {H}, "embedding", -1);
  for (size_t l = 0; l < f.is_attention.size(); ++l) {
    const std::string layer = fmt::format("layers.{}.", l);
    const auto index = static_cast<int64_t>(l);
    table.add(layer + "norm", {H}, "rms_norm", index);
    if (f.is_attention[l])
      describe_probes(table, layer + "attn.", index, f.attention);
    else
      describe_probes(table, layer + "mixer.", index, f.mixer);
    table.add(layer + "mixed", {H}, "residual", index);
    table.add(layer + "ff_norm", {H}, "rms_norm", index);
    describe_probes(table, layer + "ff.", index, f.feed_forward);
    table.add(layer + "out", {H}, "residual", index);
  }
  table.add("norm_f", {H}, "rms_norm", -1);
  table.add("logits", {f.vocab_size}, "linear", -1);
  return table.take();
}

std::vector<std::string> ops(const ModelConfig& config) {
  const BambaFields f = bamba_fields(config);
  std::vector<std::string> ops = {"embedding", "rms_norm", "linear", "feed_forward"};
  const auto attention = std::count(f.is_attention.begin(), f.is_attention.end(), true);
  if (attention > 0) ops.insert(ops.end(), {"rotary", "attention"});
  if (attention < std::ssize(f.is_attention)) ops.insert(ops.end(), {"causal_conv1d", "ssd", "gated_rms_norm"});
  return ops;
}

int64_t vocabulary(const ModelConfig& config) { return bamba_fields(config).vocab_size; }

}  // namespace

extern const ModelSpec k_bamba;
const ModelSpec k_bamba = {"bamba", "BambaForCausalLM", check, weights, probes, ops, vocabulary};

}  // namespace assay
