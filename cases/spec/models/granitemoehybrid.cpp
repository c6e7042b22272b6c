#include "cases/spec/models/granitemoehybrid.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cases/spec/blocks/hybrid_backbone.hpp"
#include "cases/spec/model_spec.hpp"
#include "cases/spec/models/fields.hpp"

namespace assay {

namespace {

// All Mamba where the config names no kinds. Both spellings are in released files.
std::vector<bool> attention_layers(const FieldReader& read) {
  const int64_t layers = read.layers(32);
  if (read.has("layer_types") && read.has("layers_block_type"))
    read.refuse("layers_block_type", "one list of layer kinds, and layer_types is one");
  const char* name = read.has("layers_block_type") ? "layers_block_type" : "layer_types";
  std::vector<bool> is_attention;
  for (const std::string& kind : read.words(name, layers, {"mamba", "attention", "linear_attention", "full_attention"}))
    is_attention.push_back(kind == "attention" || kind == "full_attention");
  is_attention.resize(static_cast<size_t>(layers), false);
  return is_attention;
}

AttentionShape read_attention_layer(const FieldReader& read, int64_t hidden_size) {
  AttentionShape shape = read_grouped_attention(read, hidden_size, 32);
  shape.scale = read.positive("attention_multiplier", 1);
  if (read.word("position_embedding_type", "nope", {"rope", "nope"}) != "rope") return shape;
  shape.rotary = read_rotary(read, shape.head_dim, 10000, 1);
  if (shape.rotary.width != shape.head_dim)
    read.refuse(read.has("rope_scaling") ? "rope_scaling" : "rope_parameters",
                "no partial_rotary_factor but 1: the whole head is rotated");
  return shape;
}

ExpertsShape read_experts(const FieldReader& read, int64_t hidden_size) {
  ExpertsShape shape;
  shape.hidden_size = hidden_size;
  shape.width = read.size("intermediate_size", 11008);
  shape.count = read.size("num_local_experts", 8, 0);
  shape.chosen = read.size("num_experts_per_tok", 2, shape.count > 0 ? 1 : 0);
  if (shape.count > 0 && shape.chosen > shape.count)
    read.refuse("num_experts_per_tok", fmt::format("at most num_local_experts = {}", shape.count));
  shape.router = ExpertsShape::Router::kTopKSoftmax;
  shape.is_stacked = true;
  shape.router_name = "router.layer.weight";
  shape.gate_name = "input_linear.weight";
  shape.down_name = "output_linear.weight";
  return shape;
}

}  // namespace

GraniteMoeHybridFields granitemoehybrid_fields(const ModelConfig& config) {
  const FieldReader read(config);
  GraniteMoeHybridFields f{};
  f.vocab_size = read.size("vocab_size", 32000, 2);
  f.hidden_size = read.size("hidden_size", 4096);
  f.rms_norm_eps = read.positive("rms_norm_eps", 1e-6);
  f.embedding_multiplier = read.positive("embedding_multiplier", 1);
  f.residual_multiplier = read.positive("residual_multiplier", 1);
  f.logits_scaling = read.positive("logits_scaling", 1);
  f.tie_word_embeddings = read.flag("tie_word_embeddings", false);
  f.is_attention = attention_layers(read);
  f.mixer = read_mamba2_mixer(read, f.hidden_size, f.rms_norm_eps);
  f.attention = read_attention_layer(read, f.hidden_size);
  f.experts = read_experts(read, f.hidden_size);
  f.shared.in_width = f.shared.hidden_size = f.hidden_size;
  f.shared.width = read.size("shared_intermediate_size", 1024);
  f.shared.is_fused = true;
  f.shared.gate_name = "input_linear";
  f.shared.down_name = "output_linear";
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
                    "max_position_embeddings",
                    "rms_norm_eps",
                    "normalization_function",
                    "rope_parameters",
                    "rope_scaling",
                    "rope_theta",
                    "attention_bias",
                    "attention_dropout",
                    "embedding_multiplier",
                    "logits_scaling",
                    "residual_multiplier",
                    "attention_multiplier",
                    "num_local_experts",
                    "num_experts_per_tok",
                    "output_router_logits",
                    "router_aux_loss_coef",
                    "shared_intermediate_size",
                    "position_embedding_type",
                    "layer_types",
                    "layers_block_type",
                    "mamba_n_heads",
                    "mamba_n_groups",
                    "mamba_d_state",
                    "mamba_d_head",
                    "mamba_d_conv",
                    "mamba_expand",
                    "mamba_chunk_size",
                    "mamba_conv_bias",
                    "mamba_proj_bias",
                    "time_step_limit"});
  read.check_word("model_type", "granitemoehybrid");
  read.check_word("hidden_act", "silu");
  read.check_word("normalization_function", "rmsnorm");
  const GraniteMoeHybridFields f = granitemoehybrid_fields(config);
  read.check_flags({"use_cache", "output_router_logits"});
  const auto H = static_cast<double>(f.hidden_size), F = static_cast<double>(f.experts.width),
             E = static_cast<double>(f.experts.count), S = static_cast<double>(f.shared.width);
  read.check_elements(2 * static_cast<double>(f.vocab_size) * H,
                      std::max(elements_of(f.mixer), elements_of(f.attention)) + 3 * S * H + E * (3 * F + 1) * H,
                      static_cast<int64_t>(f.is_attention.size()));
}

HybridBackbone backbone(const GraniteMoeHybridFields& f) {
  return {f.vocab_size, f.hidden_size, std::ssize(f.is_attention), f.tie_word_embeddings, "post_attention_layernorm",
          "norm"};
}

auto mixers(const GraniteMoeHybridFields& f) {
  return [&f](int64_t l, const auto& part) {
    if (f.is_attention[static_cast<size_t>(l)])
      part(kAttentionPart, f.attention);
    else
      part(kMambaPart, f.mixer);
  };
}

auto feed_forwards(const GraniteMoeHybridFields& f) {
  return [&f](int64_t, const auto& part) {
    if (f.has_experts()) part(PartNames{"block_sparse_moe.", "ff."}, f.experts);
    part(PartNames{"shared_mlp.", "ff.shared."}, f.shared);
  };
}

std::vector<WeightSpec> weights(const ModelConfig& config) {
  const GraniteMoeHybridFields f = granitemoehybrid_fields(config);
  return hybrid_weights(backbone(f), mixers(f), feed_forwards(f));
}

std::vector<ProbeSpec> probes(const ModelConfig& config) {
  const GraniteMoeHybridFields f = granitemoehybrid_fields(config);
  return hybrid_probes(backbone(f), mixers(f), feed_forwards(f));
}

std::vector<std::string> ops(const ModelConfig& config) {
  const GraniteMoeHybridFields f = granitemoehybrid_fields(config);
  std::vector<std::string> ops = {"embedding", "rms_norm", "linear", "feed_forward"};
  const auto attention = std::count(f.is_attention.begin(), f.is_attention.end(), true);
  if (attention > 0) ops.push_back("attention");
  if (attention > 0 && f.attention.rotary.is_on()) ops.push_back("rotary");
  if (attention < std::ssize(f.is_attention)) ops.insert(ops.end(), {"causal_conv1d", "ssd", "gated_rms_norm"});
  if (f.has_experts()) ops.insert(ops.end(), {"router", "experts"});
  return ops;
}

int64_t vocabulary(const ModelConfig& config) { return granitemoehybrid_fields(config).vocab_size; }

}  // namespace

extern const ModelSpec k_granitemoehybrid;
const ModelSpec k_granitemoehybrid = {"granitemoehybrid", "GraniteMoeHybridForCausalLM", check, weights, probes, ops,
                                      vocabulary};

}  // namespace assay
