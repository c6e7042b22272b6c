// LFM2 (models.md M8): short convolutions and attention, dense feed-forward parts.
#include "cases/spec/models/lfm2.hpp"

#include "fast/models/lfm2_network.hpp"

namespace assay::fast {

std::unique_ptr<Network> make_lfm2(const ModelConfig& config, Weights& weights);
void check_lfm2(const ModelConfig& config);

std::unique_ptr<Network> make_lfm2(const ModelConfig& config, Weights& weights) {
  return make_lfm2_network(lfm2_fields(config), weights);
}

void check_lfm2(const ModelConfig& config) { check_lfm2_network(config.id(), lfm2_fields(config)); }

}  // namespace assay::fast
