// Qwen3.5, the text part (models.md M12 and part 11, transformers 5.24.0 models/qwen3_5): typed view of the config
// fields.
//
// The shared backbone with plain projections in its mixers, dense in every layer. Forms of the config and names of the
// weights: cases/spec/models/qwen3_5_text.hpp.
#pragma once

#include "cases/spec/models/qwen_backbone.hpp"

namespace assay {

QwenBackbone qwen3_5_fields(const ModelConfig& config);

}  // namespace assay
