// FastSubject: the fast path as a Subject. Opening it and asking for capabilities work on any machine; without a usable
// GPU the device reads "none: <reason>", and load, run_op and time_op are UnsupportedError with that reason.
#pragma once

#include <memory>

#include "cases/spec/subject.hpp"
#include "fast/ops/op_runner.hpp"

namespace assay::fast {

class FastSubject : public Subject {
 public:
  const Capabilities& capabilities() const override;
  std::unique_ptr<Model> load(const ModelConfig& config, std::shared_ptr<const WeightSource> source,
                              const LoadOptions& options) override;
  OpResult run_op(const OpCall& call) override { return op_runner().run(call); }
  OpTiming time_op(const OpCall& call, int repetitions) override { return op_runner().time(call, repetitions); }

 private:
  OpRunner& op_runner();

  mutable std::unique_ptr<Capabilities> capabilities_;
  std::unique_ptr<OpRunner> op_runner_;
};

}  // namespace assay::fast
