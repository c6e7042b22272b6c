#include "cases/spec/models/qwen3_next.hpp"

#include <algorithm>

#include "cases/spec/model_spec.hpp"
#include "cases/spec/models/fields.hpp"

namespace assay {

QwenBackbone qwen3_next_fields(const ModelConfig& config) {
  const FieldReader read(config);
  // No experts at all is a way to say that every layer is dense.
  const bool has_experts = read.size("num_experts", 512, 0) > 0;
  QwenBackbone model = read_qwen_backbone(read, {.vocab_size = 151936,
                                                 .hidden_size = 2048,
                                                 .num_hidden_layers = 48,
                                                 .num_key_value_heads = 2,
                                                 .intermediate_size = 5632,
                                                 .num_experts = has_experts ? 512 : 0,
                                                 .num_experts_per_tok = 10});
  model.mixer.is_packed = true;
  model.experts.normalises = read.flag("norm_topk_prob", true);
  const std::vector<int64_t> dense = read.sizes("mlp_only_layers", 0, model.num_hidden_layers - 1);
  const int64_t step = read.size("decoder_sparse_step", 1);
  for (int64_t l = 0; l < model.num_hidden_layers; ++l)
    model.is_routed[static_cast<size_t>(l)] =
        has_experts && (l + 1) % step == 0 && std::find(dense.begin(), dense.end(), l) == dense.end();
  return model;
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
                    "rope_parameters",
                    "rope_scaling",
                    "rope_theta",
                    "partial_rotary_factor",
                    "attention_bias",
                    "attention_dropout",
                    "linear_conv_kernel_dim",
                    "linear_key_head_dim",
                    "linear_value_head_dim",
                    "linear_num_key_heads",
                    "linear_num_value_heads",
                    "decoder_sparse_step",
                    "moe_intermediate_size",
                    "shared_expert_intermediate_size",
                    "num_experts_per_tok",
                    "num_experts",
                    "norm_topk_prob",
                    "output_router_logits",
                    "router_aux_loss_coef",
                    "mlp_only_layers",
                    "layer_types",
                    "full_attention_interval"});
  read.check_word("model_type", "qwen3_next");
  check_elements(read, qwen3_next_fields(config));
}

std::vector<WeightSpec> weights(const ModelConfig& config) { return describe_weights(qwen3_next_fields(config)); }
std::vector<ProbeSpec> probes(const ModelConfig& config) { return describe_probes(qwen3_next_fields(config)); }
std::vector<std::string> ops(const ModelConfig& config) { return describe_ops(qwen3_next_fields(config)); }
int64_t vocabulary(const ModelConfig& config) { return qwen3_next_fields(config).vocab_size; }

}  // namespace

extern const ModelSpec k_qwen3_next;
const ModelSpec k_qwen3_next = {"qwen3_next", "Qwen3NextForCausalLM", check, weights, probes, ops, vocabulary};

}  // namespace assay
