#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>

#include "cases/spec/models/fields.hpp"
#include "cases/spec/models/nemotron_h.hpp"

namespace assay {

namespace {

using Layer = NemotronHFields::Layer;

// The name a field has in this file: an earlier one wins, as in the original.
const char* spelled(const FieldReader& read, const char* earlier, const char* name) {
  return read.has(earlier) ? earlier : name;
}

Layer kind_of(const std::string& word) {
  if (word == "mamba" || word == "linear_attention") return Layer::kMamba;
  if (word == "attention" || word == "full_attention") return Layer::kAttention;
  return word == "mlp" ? Layer::kFeedForward : Layer::kExperts;
}

std::vector<Layer> listed(const FieldReader& read, const char* name) {
  std::vector<Layer> layers;
  for (const std::string& word :
       read.words(name, 0, {"mamba", "linear_attention", "attention", "full_attention", "mlp", "moe"}))
    layers.push_back(kind_of(word));
  return layers;
}

std::vector<Layer> spelled_out(const FieldReader& read) {
  constexpr const char* kName = "hybrid_override_pattern";
  std::vector<Layer> layers;
  if (!read.has(kName)) return layers;
  if (!read.value(kName).is_string() || read.value(kName).get<std::string>().empty())
    read.refuse(kName, "a word of the letters M, *, - and E");
  for (const char letter : read.value(kName).get<std::string>()) {
    if (letter != 'M' && letter != '*' && letter != '-' && letter != 'E')
      read.refuse(kName, "a word of the letters M, *, - and E");
    layers.push_back(letter == 'M'   ? Layer::kMamba
                     : letter == '*' ? Layer::kAttention
                     : letter == '-' ? Layer::kFeedForward
                                     : Layer::kExperts);
  }
  return layers;
}

std::vector<Layer> layers_of(const FieldReader& read) {
  std::vector<Layer> layers;
  const char* source = "layers_block_type";
  const std::array<std::pair<const char*, std::vector<Layer>>, 3> given = {
      {{"layers_block_type", listed(read, "layers_block_type")},
       {"layer_types", listed(read, "layer_types")},
       {"hybrid_override_pattern", spelled_out(read)}}};
  for (const auto& [name, found] : given) {
    if (found.empty()) continue;
    if (!layers.empty() && found != layers) read.refuse(name, fmt::format("the layers that {} names", source));
    if (layers.empty()) source = name;
    layers = found;
  }
  if (layers.empty()) layers = {Layer::kMamba, Layer::kExperts, Layer::kAttention, Layer::kFeedForward};
  if (std::ssize(layers) > FieldReader::kMostLayers)
    read.refuse(source, fmt::format("at most {} layers", FieldReader::kMostLayers));
  if (read.has("num_hidden_layers") && read.value("num_hidden_layers") != layers.size())
    read.refuse("num_hidden_layers", fmt::format("the number of layers that {} names, {}", source, layers.size()));
  return layers;
}

Mamba2MixerShape read_mixer(const ModelConfig& config, const FieldReader& read, int64_t hidden_size, double epsilon) {
  Mamba2MixerShape shape;
  shape.hidden_size = hidden_size;
  shape.heads = read.size("mamba_num_heads", 128);
  shape.head_dim = read.size("mamba_head_dim", 64);
  shape.intermediate_size = shape.heads * shape.head_dim;
  const char* groups = spelled(read, "mamba_n_groups", "n_groups");
  shape.groups = read.size(groups, 8);
  if (shape.heads % shape.groups != 0)
    read.refuse(groups, fmt::format("a divisor of mamba_num_heads = {}", shape.heads));
  shape.state_size = read.size("ssm_state_size", 128);
  shape.conv_kernel = read.size(spelled(read, "mamba_d_conv", "conv_kernel"), 4, 2, 4);
  shape.chunk_size = read.size(spelled(read, "mamba_chunk_size", "chunk_size"), 128);
  shape.epsilon = epsilon;
  shape.has_in_bias = shape.has_out_bias = read.flag("use_bias", false);
  shape.has_conv_bias = read.flag(spelled(read, "mamba_conv_bias", "use_conv_bias"), true);

  const double floor = read.positive(spelled(read, "mamba_dt_min", "time_step_min"), 0.001);
  const auto limits =
      read.limits(spelled(read, "mamba_dt_limit", "time_step_limit"), {0.0, std::numeric_limits<double>::infinity()});
  const bool has_floor = !config.profile.is_object() || config.profile.value("dt_floor", "time_step_min") != "none";
  shape.dt_min = has_floor ? floor : limits.first;
  shape.dt_max = has_floor ? std::numeric_limits<double>::infinity() : limits.second;
  return shape;
}

AttentionShape read_attention(const FieldReader& read, int64_t hidden_size) {
  AttentionShape shape;
  shape.in_width = shape.hidden_size = hidden_size;
  shape.heads = read.size("num_attention_heads", 32);
  // null is one for each query head, unlike a missing field.
  shape.kv_heads = read.is_null("num_key_value_heads") ? shape.heads : read.size("num_key_value_heads", 8);
  if (shape.heads % shape.kv_heads != 0)
    read.refuse("num_key_value_heads", fmt::format("a divisor of num_attention_heads = {}", shape.heads));
  shape.head_dim = read.size("head_dim", 128);
  shape.scale = 1 / std::sqrt(static_cast<double>(shape.head_dim));
  return shape;
}

FeedForwardShape feed_forward_of(int64_t hidden_size, int64_t width, Activation activation, bool has_bias) {
  FeedForwardShape shape;
  shape.in_width = shape.hidden_size = hidden_size;
  shape.width = width;
  shape.activation = activation;
  shape.is_gated = false;
  shape.has_bias = has_bias;
  return shape;
}

ExpertsShape read_experts(const FieldReader& read, const FeedForwardShape& feed_forward) {
  ExpertsShape shape;
  shape.hidden_size = feed_forward.hidden_size;
  shape.width = read.size("moe_intermediate_size", 7688);
  shape.count = read.size(spelled(read, "num_local_experts", "n_routed_experts"), 8);
  shape.chosen = read.size("num_experts_per_tok", 2);
  shape.router = ExpertsShape::Router::kSigmoid;
  shape.normalises = read.flag("norm_topk_prob", true);
  shape.epsilon = 1e-20;
  shape.scaling = read.positive("routed_scaling_factor", 1.0);
  shape.has_selection_bias = true;
  shape.groups = read.size("n_group", 1);
  shape.chosen_groups = read.size("topk_group", 1);
  // A group counts as the sum of its two best experts.
  if (shape.count % shape.groups != 0 || shape.count / shape.groups < 2)
    read.refuse("n_group", fmt::format("groups of two experts or more each, of n_routed_experts = {}", shape.count));
  if (shape.chosen_groups > shape.groups) read.refuse("topk_group", fmt::format("at most n_group = {}", shape.groups));
  const int64_t open = shape.chosen_groups * (shape.count / shape.groups);
  if (shape.chosen > open)
    read.refuse("num_experts_per_tok", fmt::format("at most {}, the experts of topk_group groups", open));
  shape.activation = feed_forward.activation;
  shape.is_gated = false;
  shape.latent = read.size("moe_latent_size", 0);
  shape.has_latent_bias = feed_forward.has_bias;
  shape.keeps_router_float32 = true;
  shape.bias_name = "gate.e_score_correction_bias";
  return shape;
}

}  // namespace

NemotronHFields nemotron_h_fields(const ModelConfig& config) {
  const FieldReader read(config);
  NemotronHFields f{};
  f.vocab_size = read.size("vocab_size", 131072, 2);
  f.hidden_size = read.size("hidden_size", 4096);
  f.layer_norm_epsilon = read.positive("layer_norm_epsilon", 1e-5);
  f.layers = layers_of(read);
  f.mixer = read_mixer(config, read, f.hidden_size, f.layer_norm_epsilon);
  f.attention = read_attention(read, f.hidden_size);
  const std::string word = read.word("mlp_hidden_act", "relu2", {"relu2", "silu", "gelu"});
  const Activation activation = word == "relu2"  ? Activation::kRelu2
                                : word == "silu" ? Activation::kSilu
                                                 : Activation::kGelu;
  const bool has_bias = read.flag("mlp_bias", false);
  f.feed_forward = feed_forward_of(f.hidden_size, read.size("intermediate_size", 21504), activation, has_bias);
  f.shared =
      feed_forward_of(f.hidden_size, read.size("moe_shared_expert_intermediate_size", 7688), activation, has_bias);
  f.experts = read_experts(read, f.feed_forward);
  return f;
}

}  // namespace assay
