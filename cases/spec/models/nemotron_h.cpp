#include "cases/spec/models/nemotron_h.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cases/spec/model_spec.hpp"
#include "cases/spec/models/fields.hpp"

namespace assay {

namespace {

using Layer = NemotronHFields::Layer;

// What the original does not read, so that another value than the one it acts on misleads.
void check_unread(const FieldReader& read, const NemotronHFields& f) {
  read.check_flags({"use_cache", "attention_bias", "mamba_proj_bias", "residual_in_fp32", "rescale_prenorm_residual",
                    "use_mamba_kernels", "output_router_logits", "moe_shared_expert_overlap"});
  if (read.flag("tie_word_embeddings", false))
    read.refuse("tie_word_embeddings", "false: the head is a tensor of its own");
  if (read.size("n_shared_experts", 1, 0) != 1) read.refuse("n_shared_experts", "1");
  if (read.size("num_nextn_predict_layers", 0, 0) != 0) read.refuse("num_nextn_predict_layers", "0");
  if (read.has("attention_head_dim") && read.value("attention_head_dim") != f.attention.head_dim)
    read.refuse("attention_head_dim", fmt::format("head_dim = {}", f.attention.head_dim));
}

double elements_of_layer(const NemotronHFields& f, Layer layer) {
  const auto H = static_cast<double>(f.hidden_size);
  switch (layer) {
    case Layer::kMamba: {
      const auto I = static_cast<double>(f.mixer.intermediate_size), C = static_cast<double>(f.mixer.conv_dim()),
                 N = static_cast<double>(f.mixer.state_size);
      return (3 * I + C) * H + 12 * C + I * N;
    }
    case Layer::kAttention:
      return 2 * static_cast<double>(f.attention.heads + f.attention.kv_heads) *
             static_cast<double>(f.attention.head_dim) * H;
    case Layer::kFeedForward:
      return 2 * static_cast<double>(f.feed_forward.width) * H;
    case Layer::kExperts:
      break;
  }
  const auto X = static_cast<double>(f.experts.expert_width()), E = static_cast<double>(f.experts.count);
  return E * (2 * static_cast<double>(f.experts.width) * X + H) + 2 * X * H +
         2 * static_cast<double>(f.shared.width) * H;
}

void check(const ModelConfig& config) {
  const FieldReader read(config);
  read.check_known({"hybrid_override_pattern",
                    "layers_block_type",
                    "layer_types",
                    "layer_norm_epsilon",
                    "rms_norm_eps",
                    "norm_eps",
                    "num_attention_heads",
                    "num_key_value_heads",
                    "num_query_groups",
                    "head_dim",
                    "attention_head_dim",
                    "attention_bias",
                    "attention_dropout",
                    "hidden_dropout",
                    "sliding_window",
                    "max_position_embeddings",
                    "rope_theta",
                    "partial_rotary_factor",
                    "intermediate_size",
                    "mlp_hidden_act",
                    "mlp_bias",
                    "mamba_num_heads",
                    "mamba_head_dim",
                    "mamba_hidden_act",
                    "mamba_n_groups",
                    "n_groups",
                    "ssm_state_size",
                    "mamba_d_conv",
                    "conv_kernel",
                    "mamba_expand",
                    "expand",
                    "mamba_chunk_size",
                    "chunk_size",
                    "mamba_conv_bias",
                    "use_conv_bias",
                    "mamba_proj_bias",
                    "use_bias",
                    "mamba_dt_min",
                    "time_step_min",
                    "mamba_dt_max",
                    "time_step_max",
                    "mamba_dt_limit",
                    "time_step_limit",
                    "mamba_dt_init_floor",
                    "time_step_floor",
                    "time_step_rank",
                    "mamba_ssm_cache_dtype",
                    "use_mamba_kernels",
                    "num_local_experts",
                    "n_routed_experts",
                    "n_shared_experts",
                    "num_experts_per_tok",
                    "moe_intermediate_size",
                    "moe_shared_expert_intermediate_size",
                    "moe_latent_size",
                    "moe_shared_expert_overlap",
                    "n_group",
                    "topk_group",
                    "norm_topk_prob",
                    "routed_scaling_factor",
                    "output_router_logits",
                    "num_nextn_predict_layers",
                    "mtp_layers_block_type",
                    "mtp_hybrid_override_pattern",
                    "residual_in_fp32",
                    "rescale_prenorm_residual",
                    "num_logits_to_keep"});
  read.check_word("model_type", "nemotron_h");
  read.check_word("mamba_hidden_act", "silu");
  const NemotronHFields f = nemotron_h_fields(config);
  check_unread(read, f);
  double largest = 0;
  for (const Layer layer : f.layers) largest = std::max(largest, elements_of_layer(f, layer));
  read.check_elements(2 * static_cast<double>(f.vocab_size) * static_cast<double>(f.hidden_size), largest,
                      static_cast<int64_t>(f.layers.size()));
}

std::vector<WeightSpec> weights(const ModelConfig& config) {
  const NemotronHFields f = nemotron_h_fields(config);
  const int64_t V = f.vocab_size, H = f.hidden_size;
  WeightTable table;
  table.push_back({"backbone.embeddings.weight", {V, H}, Role::kEmbedding, H, {}});
  for (size_t l = 0; l < f.layers.size(); ++l) {
    const std::string layer = fmt::format("backbone.layers.{}.", l), mixer = layer + "mixer.";
    table.push_back({layer + "norm.weight", {H}, Role::kNorm, 1, {}});
    switch (f.layers[l]) {
      case Layer::kMamba:
        describe_weights(table, mixer, f.mixer);
        break;
      case Layer::kAttention:
        describe_weights(table, mixer, f.attention);
        break;
      case Layer::kFeedForward:
        describe_weights(table, mixer, f.feed_forward);
        break;
      case Layer::kExperts:
        describe_weights(table, mixer, f.experts);
        describe_weights(table, mixer + "shared_experts.", f.shared);
        break;
    }
  }
  table.push_back({"backbone.norm_f.weight", {H}, Role::kNorm, 1, {}});
  table.push_back({"lm_head.weight", {V, H}, Role::kHead, H, {}});
  return table;
}

std::vector<ProbeSpec> probes(const ModelConfig& config) {
  const NemotronHFields f = nemotron_h_fields(config);
  const int64_t H = f.hidden_size;
  ProbeTable table;
  table.add("embed", {H}, "embedding", -1);
  for (size_t i = 0; i < f.layers.size(); ++i) {
    const auto l = static_cast<int64_t>(i);
    const std::string layer = fmt::format("layers.{}.", l);
    table.add(layer + "norm", {H}, "rms_norm", l);
    switch (f.layers[i]) {
      case Layer::kMamba:
        describe_probes(table, layer + "mixer.", l, f.mixer);
        break;
      case Layer::kAttention:
        describe_probes(table, layer + "attn.", l, f.attention);
        break;
      case Layer::kFeedForward:
        describe_probes(table, layer + "ff.", l, f.feed_forward);
        break;
      case Layer::kExperts:
        describe_probes(table, layer + "ff.", l, f.experts);
        describe_probes(table, layer + "ff.shared.", l, f.shared);
        table.add(layer + "ff.out", {H}, "residual", l);
        break;
    }
    table.add(layer + "out", {H}, "residual", l);
  }
  table.add("norm_f", {H}, "rms_norm", -1);
  table.add("logits", {f.vocab_size}, "linear", -1);
  return table.take();
}

std::vector<std::string> ops(const ModelConfig& config) {
  const NemotronHFields f = nemotron_h_fields(config);
  const auto has = [&f](Layer layer) { return std::find(f.layers.begin(), f.layers.end(), layer) != f.layers.end(); };
  std::vector<std::string> ops = {"embedding", "rms_norm", "linear"};
  if (has(Layer::kMamba)) ops.insert(ops.end(), {"causal_conv1d", "ssd", "gated_rms_norm"});
  if (has(Layer::kAttention)) ops.emplace_back("attention");
  if (has(Layer::kFeedForward) || has(Layer::kExperts)) ops.emplace_back("feed_forward");
  if (has(Layer::kExperts)) ops.insert(ops.end(), {"router", "experts"});
  return ops;
}

int64_t vocabulary(const ModelConfig& config) { return nemotron_h_fields(config).vocab_size; }

}  // namespace

extern const ModelSpec k_nemotron_h;
const ModelSpec k_nemotron_h = {"nemotron_h", "NemotronHForCausalLM", check, weights, probes, ops, vocabulary};

}  // namespace assay
