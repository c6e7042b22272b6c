// ReferenceSubject: the float32 reference on ATen, on one CPU thread (contract: cases/spec/subject.hpp).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cases/spec/subject.hpp"

namespace assay::reference {

class ReferenceSubject : public Subject {
 public:
  ReferenceSubject() : ReferenceSubject("reference", {DType::kF32}) {}
  const Capabilities& capabilities() const override { return capabilities_; }
  std::unique_ptr<Model> load(const ModelConfig& config, std::shared_ptr<const WeightSource> source,
                              const LoadOptions& options) override;
  OpResult run_op(const OpCall& call) override;  // float32 and float64: reference/ops_table.hpp

 protected:
  // compute_dtypes other than float32: what each op stores is rounded to the one asked for (reference/pass.hpp).
  ReferenceSubject(const std::string& name, const std::vector<DType>& compute_dtypes);

 private:
  Capabilities capabilities_;
};

}  // namespace assay::reference
