// Qwen3-Next (models.md M11): the backbone with packed mixer projections, layers routed or dense as the config says.
#pragma once

#include "cases/spec/models/qwen3_next.hpp"
#include "reference/models/qwen_backbone.hpp"

namespace assay::reference {

class Qwen3Next final : public QwenNetwork {
 public:
  explicit Qwen3Next(const ModelConfig& config) : QwenNetwork(qwen3_next_fields(config)) {}
};

}  // namespace assay::reference
