#include "cases/spec/models/jamba.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cases/spec/blocks/hybrid_backbone.hpp"
#include "cases/spec/model_spec.hpp"
#include "cases/spec/models/fields.hpp"

namespace assay {

namespace {

constexpr int64_t kMostExperts = 10'000;

// Once in `period` layers, from layer `offset` on.
struct Rhythm {
  int64_t period, offset;
  bool holds(int64_t layer) const { return layer % period == offset; }
};

Rhythm read_rhythm(const FieldReader& read, const char* period, int64_t usual_period, const char* offset,
                   int64_t usual_offset) {
  const Rhythm rhythm{read.size(period, usual_period), read.size(offset, usual_offset, 0)};
  if (rhythm.offset >= rhythm.period) read.refuse(offset, fmt::format("less than {} = {}", period, rhythm.period));
  return rhythm;
}

AttentionShape read_attention(const FieldReader& read, int64_t hidden_size) {
  AttentionShape shape;
  shape.in_width = shape.hidden_size = hidden_size;
  shape.heads = read.size("num_attention_heads", 32);
  // The original means num_attention_heads by null, and its own type check refuses it.
  if (read.is_null("num_key_value_heads")) read.refuse("num_key_value_heads", "a number of heads");
  shape.kv_heads = read.size("num_key_value_heads", 8);
  if (shape.heads % shape.kv_heads != 0)
    read.refuse("num_key_value_heads", fmt::format("a divisor of num_attention_heads = {}", shape.heads));
  if (!read.has("head_dim") && hidden_size % shape.heads != 0)
    read.refuse("num_attention_heads", fmt::format("a divisor of hidden_size = {}", hidden_size));
  shape.head_dim = read.size("head_dim", hidden_size / shape.heads);
  shape.scale = 1 / std::sqrt(static_cast<double>(shape.head_dim));
  return shape;
}

}  // namespace

JambaFields jamba_fields(const ModelConfig& config) {
  const FieldReader read(config);
  JambaFields f{};
  f.vocab_size = read.size("vocab_size", 65536, 2);
  f.hidden_size = read.size("hidden_size", 4096);
  f.epsilon = read.positive("rms_norm_eps", 1e-6);
  f.tie_word_embeddings = read.flag("tie_word_embeddings", false);

  f.mixer = read_mamba_mixer(read, f.hidden_size);
  f.mixer.selection_norm = MambaMixerShape::SelectionNorm::kWeighted;
  f.mixer.epsilon = f.epsilon;
  f.attention = read_attention(read, f.hidden_size);
  f.feed_forward = {
      .in_width = f.hidden_size, .width = read.size("intermediate_size", 14336), .hidden_size = f.hidden_size};
  f.experts = {.hidden_size = f.hidden_size,
               .width = f.feed_forward.width,
               .count = read.size("num_experts", 16, 1, kMostExperts),
               .chosen = read.size("num_experts_per_tok", 2),
               .router_name = "router.weight"};
  if (f.experts.chosen > f.experts.count)
    read.refuse("num_experts_per_tok", fmt::format("at most num_experts = {}", f.experts.count));

  const Rhythm attention = read_rhythm(read, "attn_layer_period", 8, "attn_layer_offset", 4);
  const Rhythm routed = read_rhythm(read, "expert_layer_period", 2, "expert_layer_offset", 1);
  const int64_t count = read.layers(32);
  for (int64_t l = 0; l < count; ++l) f.layers.push_back({attention.holds(l), routed.holds(l) && f.experts.count > 1});
  return f;
}

namespace {

void check(const ModelConfig& config) {
  const FieldReader read(config);
  read.check_known({"intermediate_size",    "num_attention_heads",
                    "num_key_value_heads",  "head_dim",
                    "hidden_act",           "rms_norm_eps",
                    "num_logits_to_keep",   "output_router_logits",
                    "router_aux_loss_coef", "max_position_embeddings",
                    "attention_dropout",    "num_experts_per_tok",
                    "num_experts",          "expert_layer_period",
                    "expert_layer_offset",  "attn_layer_period",
                    "attn_layer_offset",    "use_mamba_kernels",
                    "mamba_d_state",        "mamba_d_conv",
                    "mamba_expand",         "mamba_dt_rank",
                    "mamba_conv_bias",      "mamba_proj_bias",
                    "use_mambapy",          "use_associative_scan"});
  read.check_word("model_type", "jamba");
  read.check_word("hidden_act", "silu");
  const JambaFields f = jamba_fields(config);
  read.check_flags({"use_cache", "output_router_logits", "use_mamba_kernels", "use_mambapy", "use_associative_scan"});
  const auto V = static_cast<double>(f.vocab_size), H = static_cast<double>(f.hidden_size),
             F = static_cast<double>(f.feed_forward.width), E = static_cast<double>(f.experts.count),
             heads = static_cast<double>(f.attention.heads + f.attention.kv_heads),
             hd = static_cast<double>(f.attention.head_dim);
  // Each layer counted as the larger of either kind.
  read.check_elements(2 * V * H, std::max(count_elements(f.mixer), 2 * heads * hd * H) + E * (3 * F + 1) * H,
                      static_cast<int64_t>(f.layers.size()));
}

HybridBackbone backbone(const JambaFields& f) {
  return {f.vocab_size, f.hidden_size, std::ssize(f.layers), f.tie_word_embeddings};
}

auto mixers(const JambaFields& f) {
  return [&f](int64_t l, const auto& part) {
    if (f.layers[static_cast<size_t>(l)].is_attention)
      part(kAttentionPart, f.attention);
    else
      part(kMambaPart, f.mixer);
  };
}

auto feed_forwards(const JambaFields& f) {
  return [&f](int64_t l, const auto& part) {
    if (f.layers[static_cast<size_t>(l)].is_routed)
      part(kFeedForwardPart, f.experts);
    else
      part(kFeedForwardPart, f.feed_forward);
  };
}

std::vector<WeightSpec> weights(const ModelConfig& config) {
  const JambaFields f = jamba_fields(config);
  return hybrid_weights(backbone(f), mixers(f), feed_forwards(f));
}

std::vector<ProbeSpec> probes(const ModelConfig& config) {
  const JambaFields f = jamba_fields(config);
  return hybrid_probes(backbone(f), mixers(f), feed_forwards(f));
}

std::vector<std::string> ops(const ModelConfig& config) {
  std::vector<std::string> ops = {"embedding", "rms_norm", "linear"};
  bool has_attention = false, has_mixer = false, has_router = false;
  for (const JambaLayer& layer : jamba_fields(config).layers) {
    (layer.is_attention ? has_attention : has_mixer) = true;
    has_router = has_router || layer.is_routed;
  }
  if (has_mixer) ops.insert(ops.end(), {"causal_conv1d", "selective_scan"});
  if (has_attention) ops.push_back("attention");
  if (has_router) ops.push_back("router");
  return ops;
}

int64_t vocabulary(const ModelConfig& config) { return jamba_fields(config).vocab_size; }

}  // namespace

extern const ModelSpec k_jamba;
const ModelSpec k_jamba = {"jamba", "JambaForCausalLM", check, weights, probes, ops, vocabulary};

}  // namespace assay
