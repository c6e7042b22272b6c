#include "cases/spec/models/bamba.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cases/spec/blocks/hybrid_backbone.hpp"
#include "cases/spec/model_spec.hpp"
#include "cases/spec/models/fields.hpp"

namespace assay {

namespace {

std::vector<bool> attention_layers(const FieldReader& read) {
  const int64_t layers = read.layers(32);
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
  read.check_known({"intermediate_size", "num_attention_heads",   "num_key_value_heads", "head_dim",
                    "hidden_act",        "rms_norm_eps",          "num_logits_to_keep",  "max_position_embeddings",
                    "attention_dropout", "attn_layer_indices",    "attn_rotary_emb",     "mamba_n_heads",
                    "mamba_d_head",      "mamba_n_groups",        "mamba_d_state",       "mamba_d_conv",
                    "mamba_expand",      "mamba_chunk_size",      "mamba_conv_bias",     "mamba_proj_bias",
                    "time_step_limit",   "z_loss_coefficient",    "rope_parameters",     "rope_scaling",
                    "rope_theta",        "partial_rotary_factor", "attention_bias",      "mlp_bias"});
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

HybridBackbone backbone(const BambaFields& f) {
  return {f.vocab_size, f.hidden_size, std::ssize(f.is_attention), f.tie_word_embeddings};
}

auto mixers(const BambaFields& f) {
  return [&f](int64_t l, const auto& part) {
    if (f.is_attention[static_cast<size_t>(l)])
      part(kAttentionPart, f.attention);
    else
      part(kMambaPart, f.mixer);
  };
}

auto feed_forwards(const BambaFields& f) {
  return [&f](int64_t, const auto& part) { part(kFeedForwardPart, f.feed_forward); };
}

std::vector<WeightSpec> weights(const ModelConfig& config) {
  const BambaFields f = bamba_fields(config);
  return hybrid_weights(backbone(f), mixers(f), feed_forwards(f));
}

std::vector<ProbeSpec> probes(const ModelConfig& config) {
  const BambaFields f = bamba_fields(config);
  return hybrid_probes(backbone(f), mixers(f), feed_forwards(f));
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
