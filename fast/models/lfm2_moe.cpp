// LFM2-MoE (models.md M9): LFM2 with routed feed-forward parts after the first num_dense_layers layers.
#include "cases/spec/models/lfm2_moe.hpp"

#include "fast/models/lfm2_network.hpp"

namespace assay::fast {

std::unique_ptr<Network> make_lfm2_moe(const ModelConfig& config, Weights& weights);
void check_lfm2_moe(const ModelConfig& config);

std::unique_ptr<Network> make_lfm2_moe(const ModelConfig& config, Weights& weights) {
  return make_lfm2_network(lfm2_moe_fields(config), weights);
}

void check_lfm2_moe(const ModelConfig& config) { check_lfm2_network(config.id(), lfm2_moe_fields(config)); }

}  // namespace assay::fast
