#include "cases/spec/models/falcon_h1.hpp"

#include <fmt/format.h>

#include <limits>

#include "cases/spec/blocks/hybrid_backbone.hpp"
#include "cases/spec/model_spec.hpp"
#include "cases/spec/models/fields.hpp"

namespace assay {

namespace {

Mamba2MixerShape read_mixer(const FieldReader& read, int64_t hidden_size, double epsilon) {
  using Gate = Mamba2MixerShape::Gate;
  Mamba2MixerShape shape;
  shape.hidden_size = hidden_size;
  const int64_t expanded = read.size("mamba_expand", 2, 1, 1024) * hidden_size;
  shape.intermediate_size = read.is_null("mamba_d_ssm") ? expanded : read.size("mamba_d_ssm", 1024);
  shape.heads = read.size("mamba_n_heads", 128);
  if (shape.intermediate_size % shape.heads != 0)
    read.refuse("mamba_n_heads", fmt::format("a divisor of the mixer's width {}", shape.intermediate_size));
  const bool is_derived = !read.has("mamba_d_head") || read.value("mamba_d_head") == "auto";
  shape.head_dim = is_derived ? shape.intermediate_size / shape.heads : read.size("mamba_d_head", 0);
  if (shape.heads * shape.head_dim != shape.intermediate_size)
    read.refuse("mamba_d_head", fmt::format("\"auto\" or {} / {} = {}", shape.intermediate_size, shape.heads,
                                            shape.intermediate_size / shape.heads));
  shape.groups = read.size("mamba_n_groups", 1);
  if (shape.heads % shape.groups != 0)
    read.refuse("mamba_n_groups", fmt::format("a divisor of mamba_n_heads = {}", shape.heads));
  shape.state_size = read.size("mamba_d_state", 256);
  shape.conv_kernel = read.size("mamba_d_conv", 4, 2, 4);
  shape.chunk_size = read.size("mamba_chunk_size", 256);
  shape.epsilon = epsilon;
  const auto limits = read.limits("time_step_limit", {0.0, std::numeric_limits<double>::infinity()});
  shape.dt_min = limits.first;
  shape.dt_max = limits.second;
  shape.has_in_bias = read.flag("mamba_proj_bias", false);
  shape.has_out_bias = read.flag("projectors_bias", false);
  shape.has_conv_bias = read.flag("mamba_conv_bias", true);
  const bool is_norm_first = read.flag("mamba_norm_before_gate", true);
  shape.gate = !read.flag("mamba_rms_norm", false) ? Gate::kGateOnly
               : is_norm_first                     ? Gate::kNormThenGate
                                                   : Gate::kGateThenNorm;
  shape.in_multiplier = read.number("ssm_in_multiplier", 1);
  const std::vector<double> multipliers = read.numbers("ssm_multipliers", {1, 1, 1, 1, 1});
  for (size_t i = 0; i < multipliers.size(); ++i) shape.multipliers.at(i) = multipliers[i];
  return shape;
}

AttentionShape read_attention(const FieldReader& read, int64_t hidden_size) {
  AttentionShape shape = read_grouped_attention(read, hidden_size, 32, 8);
  shape.key_multiplier = read.number("key_multiplier", 1);
  shape.rotary = read_rotary(read, shape.head_dim, 10000, 1);
  if (shape.rotary.width != shape.head_dim)
    read.refuse(read.has("rope_parameters") ? "rope_parameters" : "partial_rotary_factor",
                fmt::format("whole heads of {} lanes to be rotated", shape.head_dim));
  return shape;
}

FeedForwardShape read_feed_forward(const FieldReader& read, int64_t hidden_size) {
  FeedForwardShape shape;
  shape.in_width = shape.hidden_size = hidden_size;
  shape.width = read.size("intermediate_size", 14336);
  shape.has_bias = read.flag("mlp_bias", false);
  const std::vector<double> multipliers = read.numbers("mlp_multipliers", {1, 1});
  shape.gate_multiplier = multipliers[0];
  shape.down_multiplier = multipliers[1];
  return shape;
}

}  // namespace

FalconH1Fields falcon_h1_fields(const ModelConfig& config) {
  const FieldReader read(config);
  FalconH1Fields f{};
  f.vocab_size = read.size("vocab_size", 128000, 2);
  f.hidden_size = read.size("hidden_size", 4096);
  f.num_hidden_layers = read.layers(32);
  f.rms_norm_eps = read.positive("rms_norm_eps", 1e-5);
  f.tie_word_embeddings = read.flag("tie_word_embeddings", false);
  f.embedding_multiplier = read.number("embedding_multiplier", 1);
  f.lm_head_multiplier = read.number("lm_head_multiplier", 1);
  f.ssm_out_multiplier = read.number("ssm_out_multiplier", 1);
  f.attention_in_multiplier = read.number("attention_in_multiplier", 1);
  f.attention_out_multiplier = read.number("attention_out_multiplier", 1);
  f.mixer = read_mixer(read, f.hidden_size, f.rms_norm_eps);
  f.attention = read_attention(read, f.hidden_size);
  f.feed_forward = read_feed_forward(read, f.hidden_size);
  return f;
}

namespace {

void check(const ModelConfig& config) {
  const FieldReader read(config);
  read.check_known({"intermediate_size",
                    "num_attention_heads",
                    "num_key_value_heads",
                    "head_dim",
                    "hidden_act",
                    "rms_norm_eps",
                    "num_logits_to_keep",
                    "max_position_embeddings",
                    "attention_dropout",
                    "attn_layer_indices",
                    "mamba_d_ssm",
                    "mamba_n_heads",
                    "mamba_d_head",
                    "mamba_n_groups",
                    "mamba_d_state",
                    "mamba_d_conv",
                    "mamba_expand",
                    "mamba_chunk_size",
                    "mamba_conv_bias",
                    "mamba_proj_bias",
                    "mamba_norm_before_gate",
                    "mamba_rms_norm",
                    "mamba_use_mlp",
                    "mlp_expansion_factor",
                    "time_step_limit",
                    "projectors_bias",
                    "rope_parameters",
                    "rope_theta",
                    "rope_scaling",
                    "partial_rotary_factor",
                    "lm_head_multiplier",
                    "embedding_multiplier",
                    "mlp_multipliers",
                    "key_multiplier",
                    "attention_out_multiplier",
                    "attention_in_multiplier",
                    "ssm_multipliers",
                    "ssm_in_multiplier",
                    "ssm_out_multiplier",
                    "attention_bias",
                    "mlp_bias"});
  read.check_word("model_type", "falcon_h1");
  read.check_word("hidden_act", "silu");
  read.check_flags({"use_cache", "mamba_use_mlp"});
  // Every layer has both mixers and a feed-forward part; files of the first release could say so.
  if (read.has("attn_layer_indices")) read.refuse("attn_layer_indices", "null: every layer has attention");
  if (!read.flag("mamba_use_mlp", true)) read.refuse("mamba_use_mlp", "true");
  const FalconH1Fields f = falcon_h1_fields(config);
  const auto H = static_cast<double>(f.hidden_size), F = static_cast<double>(f.feed_forward.width);
  read.check_elements(2 * static_cast<double>(f.vocab_size) * H,
                      elements_of(f.mixer) + elements_of(f.attention) + 3 * F * H, f.num_hidden_layers);
}

HybridBackbone backbone(const FalconH1Fields& f) {
  return {f.vocab_size, f.hidden_size, f.num_hidden_layers, f.tie_word_embeddings};
}

auto mixers(const FalconH1Fields& f) {
  return [&f](int64_t, const auto& part) {
    part(kMambaPart, f.mixer);
    part(kAttentionPart, f.attention);
  };
}

auto feed_forwards(const FalconH1Fields& f) {
  return [&f](int64_t, const auto& part) { part(kFeedForwardPart, f.feed_forward); };
}

std::vector<WeightSpec> weights(const ModelConfig& config) {
  const FalconH1Fields f = falcon_h1_fields(config);
  return hybrid_weights(backbone(f), mixers(f), feed_forwards(f));
}

std::vector<ProbeSpec> probes(const ModelConfig& config) {
  const FalconH1Fields f = falcon_h1_fields(config);
  return hybrid_probes(backbone(f), mixers(f), feed_forwards(f));
}

std::vector<std::string> ops(const ModelConfig& config) {
  const bool is_normed = falcon_h1_fields(config).mixer.gate != Mamba2MixerShape::Gate::kGateOnly;
  return {"embedding", "rms_norm",  "linear",      "causal_conv1d", "ssd", is_normed ? "gated_rms_norm" : "gate",
          "rotary",    "attention", "feed_forward"};
}

int64_t vocabulary(const ModelConfig& config) { return falcon_h1_fields(config).vocab_size; }

}  // namespace

extern const ModelSpec k_falcon_h1;
const ModelSpec k_falcon_h1 = {"falcon_h1", "FalconH1ForCausalLM", check, weights, probes, ops, vocabulary};

}  // namespace assay
