#include "cases/spec/models/zamba.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cases/spec/model_spec.hpp"
#include "cases/spec/models/fields.hpp"

namespace assay {

namespace {

std::vector<ZambaFields::Layer> read_layers(const FieldReader& read) {
  using Layer = ZambaFields::Layer;
  const char* list = read.has("layer_types") ? "layer_types" : "layers_block_type";
  const int64_t count = read.layers(76);
  std::vector<Layer> layers;
  for (const std::string& word : read.words(list, count, {"mamba", "linear_attention", "hybrid"}))
    layers.push_back(word == "hybrid" ? Layer::kHybrid : Layer::kRecurrent);
  if (layers.empty()) {
    // The first three are fixed; the rhythm starts after them.
    if (count < 3) read.refuse("num_hidden_layers", "3 or more, or layers_block_type beside it");
    const int64_t period = read.size("attn_layer_period", 6), offset = read.size("attn_layer_offset", 4, 0);
    layers = {Layer::kRecurrent, Layer::kRecurrent, Layer::kHybrid};
    for (int64_t i = 0; i < count - 3; ++i) layers.push_back(i % period == offset ? Layer::kHybrid : Layer::kRecurrent);
  }
  if (std::count(layers.begin(), layers.end(), Layer::kHybrid) == 0)
    read.refuse(list, "a hybrid layer among them: the length of the cache is that of its keys");
  return layers;
}

AttentionShape read_attention(const FieldReader& read, int64_t hidden_size) {
  AttentionShape shape;
  shape.in_width = read.size("attention_hidden_size", 2 * hidden_size);
  if (shape.in_width != 2 * hidden_size)
    read.refuse("attention_hidden_size", fmt::format("2 * hidden_size = {}", 2 * hidden_size));
  shape.hidden_size = hidden_size;
  shape.heads = read.size("num_attention_heads", 16);
  shape.kv_heads = read.size("num_key_value_heads", 16);
  if (shape.heads % shape.kv_heads != 0)
    read.refuse("num_key_value_heads", fmt::format("a divisor of num_attention_heads = {}", shape.heads));
  const char* name = read.has("head_dim") ? "head_dim" : "attention_head_dim";
  if (!read.has(name) && shape.in_width % shape.heads != 0)
    read.refuse("num_attention_heads", fmt::format("a divisor of 2 * hidden_size = {}", shape.in_width));
  shape.head_dim = read.size(name, shape.in_width / shape.heads);
  shape.scale = 1 / std::sqrt(static_cast<double>(shape.head_dim) / 2);
  return shape;
}

}  // namespace

ZambaFields zamba_fields(const ModelConfig& config) {
  const FieldReader read(config);
  ZambaFields f{};
  f.vocab_size = read.size("vocab_size", 32000, 2);
  f.hidden_size = read.size("hidden_size", 3712);
  f.epsilon = read.positive("rms_norm_eps", 1e-5);
  if (!read.flag("tie_word_embeddings", true))
    read.refuse(
        "tie_word_embeddings",
        "true: the original shares its transformer block only then, and fills the other hybrid layers at random");
  f.layers = read_layers(read);

  f.mixer = read_mamba_mixer(read, f.hidden_size);
  f.mixer.heads = read.size("n_mamba_heads", 2);
  if (f.mixer.intermediate_size % f.mixer.heads != 0)
    read.refuse("n_mamba_heads",
                fmt::format("a divisor of mamba_expand * hidden_size = {}", f.mixer.intermediate_size));
  f.mixer.out_scale = 3.0;
  f.shared.attention = read_attention(read, f.hidden_size);
  f.shared.feed_forward = {.in_width = f.hidden_size,
                           .width = read.size("intermediate_size", 14848),
                           .hidden_size = f.hidden_size,
                           .activation = read.word("hidden_act", "gelu", {"gelu", "silu"}) == "gelu"
                                             ? Activation::kGelu
                                             : Activation::kSilu};
  f.shared.epsilon = f.epsilon;
  return f;
}

std::string ZambaFields::decoder(int64_t layer) const {
  return fmt::format("model.layers.{}.{}", layer, is_hybrid(layer) ? "mamba_decoder." : "");
}

std::string ZambaFields::shared_prefix() const {
  const auto first = std::find(layers.begin(), layers.end(), Layer::kHybrid);
  return fmt::format("model.layers.{}.shared_transf.", first - layers.begin());
}

namespace {

void check(const ModelConfig& config) {
  const FieldReader read(config);
  read.check_known({"layer_types",
                    "layers_block_type",
                    "attention_hidden_size",
                    "intermediate_size",
                    "num_attention_heads",
                    "attention_head_dim",
                    "head_dim",
                    "num_key_value_heads",
                    "n_mamba_heads",
                    "hidden_act",
                    "hidden_mamba_act",
                    "rms_norm_eps",
                    "num_logits_to_keep",
                    "max_position_embeddings",
                    "attention_dropout",
                    "attn_layer_period",
                    "attn_layer_offset",
                    "use_mamba_kernels",
                    "use_associative_scan",
                    "mamba_d_state",
                    "mamba_d_conv",
                    "mamba_expand",
                    "mamba_dt_rank",
                    "time_step_min",
                    "time_step_max",
                    "time_step_floor",
                    "mamba_conv_bias",
                    "mamba_proj_bias"});
  read.check_word("model_type", "zamba");
  read.check_word("hidden_mamba_act", "silu");
  const ZambaFields f = zamba_fields(config);
  read.check_flags({"use_cache", "use_mamba_kernels", "use_associative_scan"});
  const auto V = static_cast<double>(f.vocab_size), H = static_cast<double>(f.hidden_size),
             F = static_cast<double>(f.shared.feed_forward.width),
             hd = static_cast<double>(f.shared.attention.head_dim),
             heads = static_cast<double>(f.shared.attention.heads + f.shared.attention.kv_heads);
  read.check_elements(V * H + 4 * heads * hd * H + 3 * F * H, count_elements(f.mixer) + H * H,
                      static_cast<int64_t>(f.layers.size()));
}

std::vector<WeightSpec> weights(const ModelConfig& config) {
  const ZambaFields f = zamba_fields(config);
  const int64_t V = f.vocab_size, H = f.hidden_size;
  WeightTable table;
  table.push_back({"model.embed_tokens.weight", {V, H}, Role::kEmbedding, H, {}});
  for (int64_t l = 0; l < static_cast<int64_t>(f.layers.size()); ++l) {
    const std::string layer = fmt::format("model.layers.{}.", l);
    if (layer + "shared_transf." == f.shared_prefix()) describe_weights(table, f.shared_prefix(), f.shared);
    if (f.is_hybrid(l)) describe_call_site(table, layer, f.shared);
    table.push_back({f.decoder(l) + "input_layernorm.weight", {H}, Role::kNorm, 1, {}});
    describe_weights(table, f.decoder(l) + "mamba.", f.mixer);
  }
  table.push_back({"model.final_layernorm.weight", {H}, Role::kNorm, 1, {}});
  return table;
}

std::vector<ProbeSpec> probes(const ModelConfig& config) {
  const ZambaFields f = zamba_fields(config);
  const int64_t H = f.hidden_size;
  ProbeTable table;
  table.add("embed", {H}, "embedding", -1);
  for (int64_t l = 0; l < static_cast<int64_t>(f.layers.size()); ++l) {
    const std::string layer = fmt::format("layers.{}.", l);
    if (f.is_hybrid(l)) describe_probes(table, layer, l, f.shared);
    table.add(layer + "norm", {H}, "rms_norm", l);
    describe_probes(table, layer + "mixer.", l, f.mixer);
    table.add(layer + "out", {H}, "residual", l);
  }
  table.add("norm_f", {H}, "rms_norm", -1);
  table.add("logits", {f.vocab_size}, "linear", -1);
  return table.take();
}

std::vector<std::string> ops(const ModelConfig&) {
  return {"embedding", "rms_norm", "linear", "causal_conv1d", "selective_scan", "attention"};
}

int64_t vocabulary(const ModelConfig& config) { return zamba_fields(config).vocab_size; }

}  // namespace

extern const ModelSpec k_zamba;
const ModelSpec k_zamba = {"zamba", "ZambaForCausalLM", check, weights, probes, ops, vocabulary};

}  // namespace assay
