// ReferenceSubject: the float32 reference on ATen, on one CPU thread (contract: cases/spec/subject.hpp).
#pragma once

#include <memory>

#include "cases/spec/subject.hpp"

namespace assay::reference {

class ReferenceSubject final : public Subject {
 public:
  ReferenceSubject();
  const Capabilities& capabilities() const override { return capabilities_; }
  std::unique_ptr<Model> load(const ModelConfig& config, std::shared_ptr<const WeightSource> source,
                              const LoadOptions& options) override;
  OpResult run_op(const OpCall& call) override;  // float32 and float64: reference/ops_table.hpp

 private:
  Capabilities capabilities_;
};

}  // namespace assay::reference
