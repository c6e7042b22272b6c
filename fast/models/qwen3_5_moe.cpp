// Qwen3.5-MoE, the text part (models.md M13): plain mixer projections, routed in every layer.
#include "cases/spec/models/qwen3_5_moe.hpp"

#include "fast/models/qwen_network.hpp"

namespace assay::fast {

std::unique_ptr<Network> make_qwen3_5_moe(const ModelConfig& config, Weights& weights);
void check_qwen3_5_moe(const ModelConfig& config);

std::unique_ptr<Network> make_qwen3_5_moe(const ModelConfig& config, Weights& weights) {
  return make_qwen_network(qwen3_5_moe_fields(config), weights);
}

void check_qwen3_5_moe(const ModelConfig& config) { check_qwen_network(config.id(), qwen3_5_moe_fields(config)); }

}  // namespace assay::fast
