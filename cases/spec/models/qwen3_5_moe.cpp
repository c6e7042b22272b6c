#include "cases/spec/models/qwen3_5_moe.hpp"

#include "cases/spec/model_spec.hpp"
#include "cases/spec/models/qwen3_5_text.hpp"

namespace assay {

QwenBackbone qwen3_5_moe_fields(const ModelConfig& config) {
  QwenBackbone model = read_qwen_backbone(qwen3_5_text(config), {.vocab_size = 248320,
                                                                 .hidden_size = 2048,
                                                                 .num_hidden_layers = 40,
                                                                 .num_key_value_heads = 2,
                                                                 .intermediate_size = 0,
                                                                 .num_experts = 256,
                                                                 .num_experts_per_tok = 8});
  model.prefix = qwen3_5_prefix(config);
  model.experts.normalises = true;
  model.experts.is_stacked = true;
  model.experts.gate_name = "experts.gate_up_proj";
  model.experts.down_name = "experts.down_proj";
  return model;
}

namespace {

void check(const ModelConfig& config) {
  check_qwen3_5(config, "qwen3_5_moe",
                {"moe_intermediate_size", "shared_expert_intermediate_size", "num_experts_per_tok", "num_experts",
                 "norm_topk_prob", "output_router_logits", "router_aux_loss_coef"});
  const FieldReader text = qwen3_5_text(config);
  // The original does not read it.
  if (!text.flag("norm_topk_prob", true)) text.refuse("norm_topk_prob", "true");
  check_elements(text, qwen3_5_moe_fields(config));
}

std::vector<WeightSpec> weights(const ModelConfig& config) { return describe_weights(qwen3_5_moe_fields(config)); }
std::vector<ProbeSpec> probes(const ModelConfig& config) { return describe_probes(qwen3_5_moe_fields(config)); }
std::vector<std::string> ops(const ModelConfig& config) { return describe_ops(qwen3_5_moe_fields(config)); }
int64_t vocabulary(const ModelConfig& config) { return qwen3_5_moe_fields(config).vocab_size; }

}  // namespace

extern const ModelSpec k_qwen3_5_moe;
const ModelSpec k_qwen3_5_moe = {"qwen3_5_moe", "Qwen3_5MoeForCausalLM", check, weights, probes, ops, vocabulary};

}  // namespace assay
