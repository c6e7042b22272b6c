#include "cases/spec/models/zamba2.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "cases/spec/model_spec.hpp"
#include "cases/spec/models/fields.hpp"

namespace assay {

namespace {

std::vector<bool> read_kinds(const FieldReader& read) {
  const int64_t layers = read.layers(54);
  std::vector<bool> kinds;
  for (const std::string& kind : read.words("layers_block_type", layers, {"mamba", "linear_attention", "hybrid"}))
    kinds.push_back(kind == "hybrid");
  if (kinds.empty()) {
    kinds.assign(54, false);
    for (const size_t layer : {6, 12, 18, 24, 30, 36, 42, 47, 51}) kinds[layer] = true;
    if (layers != 54) read.refuse("num_hidden_layers", "54 where there is no layers_block_type");
  }
  if (std::find(kinds.begin(), kinds.end(), true) == kinds.end())
    read.refuse("layers_block_type", "at least one \"hybrid\"");
  return kinds;
}

Mamba2MixerShape read_mixer(const ModelConfig& config, const FieldReader& read, int64_t hidden_size) {
  Mamba2MixerShape shape;
  shape.hidden_size = hidden_size;
  shape.intermediate_size = read.size("mamba_expand", 2, 1, 1024) * hidden_size;
  shape.heads = read.size("n_mamba_heads", 8);
  if (shape.intermediate_size % shape.heads != 0)
    read.refuse("n_mamba_heads", fmt::format("a divisor of mamba_expand * hidden_size = {}", shape.intermediate_size));
  shape.head_dim = shape.intermediate_size / shape.heads;
  shape.groups = read.size("mamba_ngroups", 1);
  if (shape.heads % shape.groups != 0)
    read.refuse("mamba_ngroups", fmt::format("a divisor of n_mamba_heads = {}", shape.heads));
  shape.state_size = read.size("mamba_d_state", 64);
  shape.conv_kernel = read.size("mamba_d_conv", 4, 2, 4);
  shape.chunk_size = read.size("chunk_size", 256);
  shape.epsilon = 1e-5;
  const double floor = read.positive("time_step_min", 0.001);
  const auto limits = read.limits("time_step_limit", {0.0, std::numeric_limits<double>::infinity()});
  if (config.profile.value("dt_floor", "time_step_min") == "time_step_min") {
    shape.dt_min = floor;
  } else {
    shape.dt_min = limits.first;
    shape.dt_max = limits.second;
  }
  shape.has_in_bias = shape.has_out_bias = read.flag("add_bias_linear", false);
  shape.has_conv_bias = true;  // use_conv_bias is not read by the original
  shape.out_scale = 3;         // the head is tied
  return shape;
}

AttentionShape read_shared_attention(const FieldReader& read, int64_t hidden_size, int64_t adapter_rank) {
  AttentionShape shape;
  shape.in_width = 2 * hidden_size;
  shape.hidden_size = hidden_size;
  shape.heads = read.size("num_attention_heads", 32);
  if (shape.in_width % shape.heads != 0)
    read.refuse("num_attention_heads", fmt::format("a divisor of 2 * hidden_size = {}", shape.in_width));
  shape.kv_heads = read.size("num_key_value_heads", shape.heads);
  if (shape.heads % shape.kv_heads != 0)
    read.refuse("num_key_value_heads", fmt::format("a divisor of num_attention_heads = {}", shape.heads));
  shape.head_dim = shape.in_width / shape.heads;
  shape.scale = 1 / std::sqrt(static_cast<double>(shape.head_dim) / 2);
  if (read.flag("use_mem_rope", false)) {
    shape.rotary = read_rotary(read, shape.head_dim, 10000, 1);
    if (shape.rotary.width != shape.head_dim)
      read.refuse(read.has("rope_parameters") ? "rope_parameters" : "partial_rotary_factor",
                  fmt::format("whole heads of {} lanes to be rotated", shape.head_dim));
  }
  if (read.flag("use_shared_attention_adapter", false)) {
    shape.adapter_rank = adapter_rank;
    if (shape.kv_heads != shape.heads)
      read.refuse("num_key_value_heads",
                  fmt::format("num_attention_heads = {} beside attention adapters, which are 2 * hidden_size wide",
                              shape.heads));
  }
  return shape;
}

}  // namespace

int64_t Zamba2Fields::ordinal(int64_t layer) const {
  return std::find(hybrid.begin(), hybrid.end(), layer) - hybrid.begin();
}

int64_t Zamba2Fields::first_layer_of_block(int64_t ordinal) const {
  return hybrid.at(static_cast<size_t>(ordinal % num_mem_blocks));
}

Zamba2Fields zamba2_fields(const ModelConfig& config) {
  const FieldReader read(config);
  Zamba2Fields f{};
  f.vocab_size = read.size("vocab_size", 32000, 2);
  f.hidden_size = read.size("hidden_size", 2560);
  f.rms_norm_eps = read.positive("rms_norm_eps", 1e-5);
  f.is_hybrid = read_kinds(read);
  for (size_t l = 0; l < f.is_hybrid.size(); ++l)
    if (f.is_hybrid[l]) f.hybrid.push_back(static_cast<int64_t>(l));
  f.num_mem_blocks = read.size("num_mem_blocks", 1, 1, FieldReader::kMostLayers);
  f.mixer = read_mixer(config, read, f.hidden_size);
  const int64_t adapter_rank = read.size("adapter_rank", 128);
  f.shared.attention = read_shared_attention(read, f.hidden_size, adapter_rank);
  f.shared.feed_forward = {.in_width = f.hidden_size,
                           .width = read.size("intermediate_size", 4 * f.hidden_size),
                           .hidden_size = f.hidden_size,
                           .activation = Activation::kGelu,
                           .is_fused = true,
                           .has_bias = read.flag("add_bias_linear", false),
                           .adapter_rank = adapter_rank,
                           .gate_name = "gate_up_proj"};
  f.shared.epsilon = f.rms_norm_eps;
  return f;
}

namespace {

// A field that the original recomputes: there or not, but never another value.
void check_derived(const FieldReader& read, const char* name, const nlohmann::json& value) {
  if (read.has(name) && read.value(name) != value) read.refuse(name, value.dump() + ", as derived from other fields");
}

void check(const ModelConfig& config) {
  const FieldReader read(config);
  read.check_known({"max_position_embeddings",
                    "layers_block_type",
                    "hybrid_layer_ids",
                    "mamba_d_state",
                    "mamba_d_conv",
                    "mamba_expand",
                    "mamba_ngroups",
                    "mamba_headdim",
                    "time_step_min",
                    "time_step_max",
                    "time_step_floor",
                    "time_step_limit",
                    "n_mamba_heads",
                    "use_mamba_kernels",
                    "use_conv_bias",
                    "chunk_size",
                    "use_mem_eff_path",
                    "add_bias_linear",
                    "intermediate_size",
                    "hidden_act",
                    "num_attention_heads",
                    "num_key_value_heads",
                    "num_query_groups",
                    "kv_channels",
                    "attention_hidden_size",
                    "attention_head_dim",
                    "attention_dropout",
                    "num_mem_blocks",
                    "use_shared_attention_adapter",
                    "use_shared_mlp_adapter",
                    "adapter_rank",
                    "use_mem_rope",
                    "use_long_context",
                    "rope_parameters",
                    "rope_theta",
                    "rope_scaling",
                    "partial_rotary_factor",
                    "rms_norm_eps",
                    "num_logits_to_keep"});
  read.check_word("model_type", "zamba2");
  read.check_word("hidden_act", "gelu");
  read.check_flags({"use_mamba_kernels", "use_conv_bias", "use_mem_eff_path", "use_long_context", "use_cache"});
  if (!read.flag("use_shared_mlp_adapter", true)) read.refuse("use_shared_mlp_adapter", "true: every file has them");
  // The original shares its blocks by the same switch: with false it would load a block's other copies as noise.
  if (!read.flag("tie_word_embeddings", true)) read.refuse("tie_word_embeddings", "true, which shares the blocks too");
  const Zamba2Fields f = zamba2_fields(config);
  const AttentionShape& attention = f.shared.attention;
  check_derived(read, "attention_hidden_size", 2 * f.hidden_size);
  check_derived(read, "attention_head_dim", attention.head_dim);
  check_derived(read, "mamba_headdim", f.mixer.head_dim);
  check_derived(read, "hybrid_layer_ids", f.hybrid);
  check_derived(read, "kv_channels", f.hidden_size / attention.heads);
  check_derived(read, "num_query_groups", attention.heads);
  const auto H = static_cast<double>(f.hidden_size), F = static_cast<double>(f.shared.feed_forward.width),
             R = static_cast<double>(f.shared.feed_forward.adapter_rank);
  read.check_elements(static_cast<double>(f.vocab_size) * H,
                      elements_of(f.mixer) + elements_of(attention) + (H + 3 * F) * H + R * (13 * H + 2 * F),
                      static_cast<int64_t>(f.is_hybrid.size()));
}

std::vector<WeightSpec> weights(const ModelConfig& config) {
  const Zamba2Fields f = zamba2_fields(config);
  const int64_t V = f.vocab_size, H = f.hidden_size, sites = static_cast<int64_t>(f.hybrid.size());
  WeightTable table;
  table.push_back({"model.embed_tokens.weight", {V, H}, Role::kEmbedding, H, {}});
  for (int64_t l = 0; l < static_cast<int64_t>(f.is_hybrid.size()); ++l) {
    const std::string layer = fmt::format("model.layers.{}.", l);
    const bool is_hybrid = f.is_hybrid[static_cast<size_t>(l)];
    if (is_hybrid) {
      const int64_t ordinal = f.ordinal(l);
      describe_call_site(table, layer, f.shared);
      if (ordinal < f.num_mem_blocks) {
        const std::string block = layer + "shared_transformer.";
        describe_weights(table, block, f.shared);
        for (int64_t j = ordinal; j < sites; j += f.num_mem_blocks) describe_adapters(table, block, j, f.shared);
      }
    }
    const std::string inside = is_hybrid ? layer + "mamba_decoder." : layer;
    describe_weights(table, inside + "mamba.", f.mixer);
    table.push_back({inside + "input_layernorm.weight", {H}, Role::kNorm, 1, {}});
  }
  table.push_back({"model.final_layernorm.weight", {H}, Role::kNorm, 1, {}});
  return table;
}

std::vector<ProbeSpec> probes(const ModelConfig& config) {
  const Zamba2Fields f = zamba2_fields(config);
  const int64_t H = f.hidden_size;
  ProbeTable table;
  table.add("embed", {H}, "embedding", -1);
  for (int64_t l = 0; l < static_cast<int64_t>(f.is_hybrid.size()); ++l) {
    const std::string layer = fmt::format("layers.{}.", l);
    if (f.is_hybrid[static_cast<size_t>(l)]) describe_probes(table, layer, l, f.shared);
    table.add(layer + "norm", {H}, "rms_norm", l);
    describe_probes(table, layer + "mixer.", l, f.mixer);
    table.add(layer + "out", {H}, "residual", l);
  }
  table.add("norm_f", {H}, "rms_norm", -1);
  table.add("logits", {f.vocab_size}, "linear", -1);
  return table.take();
}

std::vector<std::string> ops(const ModelConfig& config) {
  std::vector<std::string> ops = {"embedding", "rms_norm",       "linear",    "causal_conv1d",
                                  "ssd",       "gated_rms_norm", "attention", "feed_forward"};
  if (zamba2_fields(config).shared.attention.rotary.is_on()) ops.emplace_back("rotary");
  return ops;
}

int64_t vocabulary(const ModelConfig& config) { return zamba2_fields(config).vocab_size; }

}  // namespace

extern const ModelSpec k_zamba2;
const ModelSpec k_zamba2 = {"zamba2", "Zamba2ForCausalLM", check, weights, probes, ops, vocabulary};

}  // namespace assay
