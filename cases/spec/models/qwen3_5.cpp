#include "cases/spec/models/qwen3_5.hpp"

#include "cases/spec/model_spec.hpp"
#include "cases/spec/models/qwen3_5_text.hpp"

namespace assay {

QwenBackbone qwen3_5_fields(const ModelConfig& config) {
  QwenBackbone model = read_qwen_backbone(qwen3_5_text(config), {.vocab_size = 248320,
                                                                 .hidden_size = 4096,
                                                                 .num_hidden_layers = 32,
                                                                 .num_key_value_heads = 4,
                                                                 .intermediate_size = 12288,
                                                                 .num_experts = 0,
                                                                 .num_experts_per_tok = 0});
  model.prefix = qwen3_5_prefix(config);
  return model;
}

namespace {

void check(const ModelConfig& config) {
  check_qwen3_5(config, "qwen3_5", {"intermediate_size"});
  check_elements(qwen3_5_text(config), qwen3_5_fields(config));
}

std::vector<WeightSpec> weights(const ModelConfig& config) { return describe_weights(qwen3_5_fields(config)); }
std::vector<ProbeSpec> probes(const ModelConfig& config) { return describe_probes(qwen3_5_fields(config)); }
std::vector<std::string> ops(const ModelConfig& config) { return describe_ops(qwen3_5_fields(config)); }
int64_t vocabulary(const ModelConfig& config) { return qwen3_5_fields(config).vocab_size; }

}  // namespace

extern const ModelSpec k_qwen3_5;
const ModelSpec k_qwen3_5 = {"qwen3_5", "Qwen3_5ForCausalLM", check, weights, probes, ops, vocabulary};

}  // namespace assay
