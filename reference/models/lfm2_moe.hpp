// LFM2-MoE (models.md M9): LFM2 with routed feed-forward parts after the first num_dense_layers layers.
#pragma once

#include "cases/spec/models/lfm2_moe.hpp"
#include "reference/models/lfm2.hpp"

namespace assay::reference {

class Lfm2Moe final : public Lfm2 {
 public:
  explicit Lfm2Moe(const ModelConfig& config) : Lfm2(lfm2_moe_fields(config)) {}
};

}  // namespace assay::reference
