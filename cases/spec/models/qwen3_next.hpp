// Qwen3-Next (models.md M11 and part 11, transformers 5.24.0 models/qwen3_next): typed view of the config fields.
//
// The shared backbone with packed projections in its mixers; a layer is routed unless mlp_only_layers names it or
// decoder_sparse_step leaves it out, and then dense.
#pragma once

#include "cases/spec/models/qwen_backbone.hpp"

namespace assay {

QwenBackbone qwen3_next_fields(const ModelConfig& config);

}  // namespace assay
