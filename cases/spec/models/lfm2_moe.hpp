// LFM2-MoE (models.md M9 and part 11, transformers 5.24.0 models/lfm2_moe): typed view of the config fields.
//
// The backbone of LFM2; the first num_dense_layers feed-forward parts are dense and as wide as intermediate_size says,
// the others routed: sigmoid scores, chosen by score + expert_bias, weighted by the score alone.
#pragma once

#include "cases/spec/blocks/lfm2_backbone.hpp"
#include "cases/spec/model_config.hpp"

namespace assay {

Lfm2Backbone lfm2_moe_fields(const ModelConfig& config);

}  // namespace assay
