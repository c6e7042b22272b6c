// Qwen3.5-MoE, the text part (models.md M13): the backbone with plain mixer projections, routed in every layer.
#pragma once

#include "cases/spec/models/qwen3_5_moe.hpp"
#include "reference/models/qwen_backbone.hpp"

namespace assay::reference {

class Qwen35Moe final : public QwenNetwork {
 public:
  explicit Qwen35Moe(const ModelConfig& config) : QwenNetwork(qwen3_5_moe_fields(config)) {}
};

}  // namespace assay::reference
