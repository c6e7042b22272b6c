// Falcon-Mamba (models.md M3, transformers 5.24.0 models/falcon_mamba): typed view of the config fields.
//
// h += mixer(rms_norm(h)), L times; then rms_norm and the head.
// mixer   Mamba-1 whose dt_low, B and C each pass a norm without weights, with an epsilon of its own
#pragma once

#include <cstdint>

#include "cases/spec/blocks/mamba_mixer.hpp"
#include "cases/spec/blocks/pure_backbone.hpp"
#include "cases/spec/model_config.hpp"

namespace assay {

struct FalconMambaFields {
  PureBackbone backbone;  // the released 7B has its own head although tied is the default
  double layer_norm_epsilon;
  MambaMixerShape mixer;
};

FalconMambaFields falcon_mamba_fields(const ModelConfig& config);  // InputError naming the field

}  // namespace assay
