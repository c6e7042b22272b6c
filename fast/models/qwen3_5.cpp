// Qwen3.5, the text part (models.md M12): plain mixer projections, dense in every layer.
#include "cases/spec/models/qwen3_5.hpp"

#include "fast/models/qwen_network.hpp"

namespace assay::fast {

std::unique_ptr<Network> make_qwen3_5(const ModelConfig& config, Weights& weights);
void check_qwen3_5(const ModelConfig& config);

std::unique_ptr<Network> make_qwen3_5(const ModelConfig& config, Weights& weights) {
  return make_qwen_network(qwen3_5_fields(config), weights);
}

void check_qwen3_5(const ModelConfig& config) { check_qwen_network(config.id(), qwen3_5_fields(config)); }

}  // namespace assay::fast
