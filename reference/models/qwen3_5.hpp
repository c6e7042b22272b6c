// Qwen3.5, the text part (models.md M12): the backbone with plain mixer projections, dense in every layer.
#pragma once

#include "cases/spec/models/qwen3_5.hpp"
#include "reference/models/qwen_backbone.hpp"

namespace assay::reference {

class Qwen35 final : public QwenNetwork {
 public:
  explicit Qwen35(const ModelConfig& config) : QwenNetwork(qwen3_5_fields(config)) {}
};

}  // namespace assay::reference
