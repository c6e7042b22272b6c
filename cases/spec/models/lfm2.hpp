// LFM2 (models.md M8 and part 11, transformers 5.24.0 models/lfm2): typed view of the config fields.
//
// h += {short_conv | attention}(rms_norm(h));  h += feed_forward(rms_norm(h)); then rms_norm and the head
// F  f = int(2 * intermediate_size / 3), times block_ffn_dim_multiplier (truncated), rounded up to a multiple of
//    block_multiple_of; intermediate_size itself where block_auto_adjust_ff_dim is false
#pragma once

#include "cases/spec/blocks/lfm2_backbone.hpp"
#include "cases/spec/model_config.hpp"

namespace assay {

Lfm2Backbone lfm2_fields(const ModelConfig& config);

}  // namespace assay
