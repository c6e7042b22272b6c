// Qwen3.5-MoE, the text part (models.md M13 and part 11, transformers 5.24.0 models/qwen3_5_moe): typed view of the
// config fields.
//
// The shared backbone with plain projections in its mixers, routed in every layer; the chosen weights always add up to
// 1. Its experts are stacked: mlp.experts.gate_up_proj [E, 2F, H], gate rows first, and mlp.experts.down_proj [E, H,
// F]. Forms of the config and names of the weights: cases/spec/models/qwen3_5_text.hpp.
#pragma once

#include "cases/spec/models/qwen_backbone.hpp"

namespace assay {

QwenBackbone qwen3_5_moe_fields(const ModelConfig& config);

}  // namespace assay
