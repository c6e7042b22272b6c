// Qwen3-Next (models.md M11): packed mixer projections, layers routed or dense as the config says.
#include "cases/spec/models/qwen3_next.hpp"

#include "fast/models/qwen_network.hpp"

namespace assay::fast {

std::unique_ptr<Network> make_qwen3_next(const ModelConfig& config, Weights& weights);
void check_qwen3_next(const ModelConfig& config);

std::unique_ptr<Network> make_qwen3_next(const ModelConfig& config, Weights& weights) {
  return make_qwen_network(qwen3_next_fields(config), weights);
}

void check_qwen3_next(const ModelConfig& config) { check_qwen_network(config.id(), qwen3_next_fields(config)); }

}  // namespace assay::fast
