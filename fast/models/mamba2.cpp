// Mamba-2: h += mixer(rms_norm(h)), L times; then rms_norm and the head (models.md M2).
#include "cases/spec/models/mamba2.hpp"

#include "fast/blocks/mamba2_mixer.hpp"
#include "fast/blocks/size_limits.hpp"
#include "fast/models/pure_network.hpp"

namespace assay::fast {

std::unique_ptr<Network> make_mamba2(const ModelConfig& config, Weights& weights);
void check_mamba2(const ModelConfig& config);

std::unique_ptr<Network> make_mamba2(const ModelConfig& config, Weights& weights) {
  const Mamba2Fields fields = mamba2_fields(config);
  return make_pure_network<mamba2_mixer_weights, mamba2_mixer>(fields.backbone(), fields.layer_norm_epsilon,
                                                               fields.mixer(), weights);
}

void check_mamba2(const ModelConfig& config) { check_sizes(config.id(), mamba2_fields(config).mixer()); }

}  // namespace assay::fast
