// Falcon-Mamba: h += mixer(rms_norm(h)), L times; then rms_norm and the head (models.md M3). The mixer norms dt, B and
// C without weights.
#include "cases/spec/models/falcon_mamba.hpp"

#include "fast/blocks/mamba_mixer.hpp"
#include "fast/blocks/size_limits.hpp"
#include "fast/models/pure_network.hpp"

namespace assay::fast {

std::unique_ptr<Network> make_falcon_mamba(const ModelConfig& config, Weights& weights);
void check_falcon_mamba(const ModelConfig& config);

std::unique_ptr<Network> make_falcon_mamba(const ModelConfig& config, Weights& weights) {
  const FalconMambaFields fields = falcon_mamba_fields(config);
  return make_pure_network<mamba_mixer_weights, mamba_mixer>(fields.backbone, fields.layer_norm_epsilon, fields.mixer,
                                                             weights);
}

void check_falcon_mamba(const ModelConfig& config) { check_sizes(config.id(), falcon_mamba_fields(config).mixer); }

}  // namespace assay::fast
