#include "cases/spec/models/lfm2_moe.hpp"

#include <fmt/format.h>

#include "cases/spec/model_spec.hpp"

namespace assay {

namespace {

ExpertsShape read_experts(const FieldReader& read, int64_t hidden_size) {
  ExpertsShape shape;
  shape.hidden_size = hidden_size;
  shape.width = read.size("moe_intermediate_size", 1792);
  shape.count = read.size("num_experts", 32);
  shape.chosen = read.size("num_experts_per_tok", 4);
  if (shape.chosen > shape.count)
    read.refuse("num_experts_per_tok", fmt::format("at most num_experts = {}", shape.count));
  shape.router = ExpertsShape::Router::kSigmoid;
  shape.normalises = read.flag("norm_topk_prob", true);
  shape.epsilon = 1e-6;
  shape.scaling = read.positive("routed_scaling_factor", 1.0);
  shape.has_selection_bias = read.flag("use_expert_bias", true);
  shape.gate_name = "w1";
  shape.up_name = "w3";
  shape.down_name = "w2";
  return shape;
}

}  // namespace

Lfm2Backbone lfm2_moe_fields(const ModelConfig& config) {
  const FieldReader read(config);
  Lfm2Backbone model = read_lfm2_backbone(read, 2048, /*has_indices=*/false);
  model.dense.width = read.size("intermediate_size", 7168);
  model.dense_layers = read.size("num_dense_layers", 2, 0);
  if (model.dense_layers > model.layers())
    read.refuse("num_dense_layers", fmt::format("at most num_hidden_layers = {}", model.layers()));
  model.experts = read_experts(read, model.hidden_size);
  return model;
}

namespace {

void check(const ModelConfig& config) {
  const FieldReader read(config);
  read.check_known({"intermediate_size",
                    "moe_intermediate_size",
                    "num_dense_layers",
                    "layer_types",
                    "num_attention_heads",
                    "num_key_value_heads",
                    "head_dim",
                    "norm_eps",
                    "conv_bias",
                    "conv_L_cache",
                    "num_experts",
                    "num_experts_per_tok",
                    "use_expert_bias",
                    "norm_topk_prob",
                    "routed_scaling_factor",
                    "output_router_logits",
                    "rope_parameters",
                    "rope_theta",
                    "rope_scaling",
                    "partial_rotary_factor",
                    "theta",
                    "max_position_embeddings",
                    "tie_embedding"});
  read.check_word("model_type", "lfm2_moe");
  read.check_flags({"output_router_logits"});
  check_lfm2_backbone(read, lfm2_moe_fields(config));
}

std::vector<WeightSpec> weights(const ModelConfig& config) { return lfm2_weights(lfm2_moe_fields(config)); }

std::vector<ProbeSpec> probes(const ModelConfig& config) { return lfm2_probes(lfm2_moe_fields(config)); }

std::vector<std::string> ops(const ModelConfig& config) { return lfm2_ops(lfm2_moe_fields(config)); }

int64_t vocabulary(const ModelConfig& config) { return lfm2_moe_fields(config).vocab_size; }

}  // namespace

extern const ModelSpec k_lfm2_moe;
const ModelSpec k_lfm2_moe = {"lfm2_moe", "Lfm2MoeForCausalLM", check, weights, probes, ops, vocabulary};

}  // namespace assay
