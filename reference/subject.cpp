#include "reference/subject.hpp"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/version.h>

#include <algorithm>
#include <utility>

#include "cases/spec/error.hpp"
#include "reference/ops_table.hpp"
#include "reference/session.hpp"
#include "reference/tensor.hpp"
#include "reference/torch_errors.hpp"

namespace assay::reference {

namespace {

class ReferenceModel final : public Model {
 public:
  explicit ReferenceModel(std::shared_ptr<const LoadedModel> model) : model_(std::move(model)) {}

  std::unique_ptr<Session> start(const SessionOptions& options) override {
    return std::make_unique<ReferenceSession>(model_, options);
  }

  HostTensor weight(const std::string& name) const override { return to_host(model_->weights.at(name)); }

  MemoryUse memory() const override {
    const int64_t bytes = model_->weights.bytes();
    return {.allocations = model_->weights.count(),
            .current_bytes = bytes,
            .peak_bytes = bytes,
            .peak_weight_bytes = bytes};
  }

 private:
  std::shared_ptr<const LoadedModel> model_;
};

template <class Value>
bool holds(const std::vector<Value>& values, const Value& value) {
  return std::count(values.begin(), values.end(), value) > 0;
}

}  // namespace

ReferenceSubject::ReferenceSubject() {
  // One thread, as the recorder has it, and no second matrix library: sums keep one order on every machine.
  at::set_num_threads(1);
  at::globalContext().setUserEnabledMkldnn(false);

  capabilities_.name = "reference";
  capabilities_.device = "cpu";
  capabilities_.versions = {std::string("torch ") + TORCH_VERSION};
  capabilities_.models = network_names();
  capabilities_.compute_dtypes = {DType::kF32};
  capabilities_.weight_dtypes = {DType::kF32, DType::kF16, DType::kBF16};
  capabilities_.caches = {CacheKind::kNone, CacheKind::kDynamic, CacheKind::kStatic};
  capabilities_.residencies = {Residency::kResident};
  capabilities_.forms = known_forms();
  capabilities_.can_reorder = true;
}

std::unique_ptr<Model> ReferenceSubject::load(const ModelConfig& config, std::shared_ptr<const WeightSource> source,
                                              const LoadOptions& options) {
  const std::string where = "load of " + config.id();
  if (!holds(capabilities_.compute_dtypes, options.compute))
    throw UnsupportedError(where, "the reference does not compute in " + std::string(dtype_name(options.compute)),
                           "it computes in float32 on weights rounded to another dtype");
  if (!holds(capabilities_.weight_dtypes, options.weights))
    throw UnsupportedError(where, "the reference does not hold weights in " + std::string(dtype_name(options.weights)));
  if (!options.quantization.empty())
    throw UnsupportedError(where, "the reference does not quantise (asked for '" + options.quantization + "')");
  if (!holds(capabilities_.residencies, options.residency))
    throw UnsupportedError(where, "the reference keeps all weights resident and does not offload layers");
  return translated(where, [&]() -> std::unique_ptr<Model> {
    std::unique_ptr<Network> network = make_network(config);
    return std::make_unique<ReferenceModel>(std::make_shared<const LoadedModel>(
        LoadedModel{config.id(), std::move(network), WeightStore(config, *source, options.weights)}));
  });
}

OpResult ReferenceSubject::run_op(const OpCall& call) {
  return translated("op " + call.op, [&] { return run_reference_op(call); });
}

}  // namespace assay::reference
