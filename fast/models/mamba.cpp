// Mamba-1: h += mixer(rms_norm(h)), L times; then rms_norm and the head (models.md M1).
#include "cases/spec/models/mamba.hpp"

#include "fast/blocks/mamba_mixer.hpp"
#include "fast/blocks/size_limits.hpp"
#include "fast/models/pure_network.hpp"

namespace assay::fast {

std::unique_ptr<Network> make_mamba(const ModelConfig& config, Weights& weights);
void check_mamba(const ModelConfig& config);

std::unique_ptr<Network> make_mamba(const ModelConfig& config, Weights& weights) {
  const MambaFields fields = mamba_fields(config);
  return make_pure_network<mamba_mixer_weights, mamba_mixer>(fields.backbone(), fields.layer_norm_epsilon,
                                                             fields.mixer(), weights);
}

void check_mamba(const ModelConfig& config) { check_sizes(config.id(), mamba_fields(config).mixer()); }

}  // namespace assay::fast
