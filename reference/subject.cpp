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

  HostTensor weight(const std::string& name) const override { return to_host(model_->weights->at(name)); }
  std::vector<NamedTensor> quantized(const std::string& name) const override {
    const std::optional<Nf4Weight> nf4 = model_->weights->nf4(name);
    return nf4 ? named(*nf4) : std::vector<NamedTensor>{};
  }

  MemoryUse memory() const override {
    const MemoryCount& count = *model_->memory;
    return {.allocations = count.allocations,
            .current_bytes = count.bytes,
            .peak_bytes = count.peak_bytes,
            .peak_weight_bytes = count.peak_weight_bytes};
  }

 private:
  std::shared_ptr<const LoadedModel> model_;
};

template <class Value>
bool holds(const std::vector<Value>& values, const Value& value) {
  return std::count(values.begin(), values.end(), value) > 0;
}

}  // namespace

ReferenceSubject::ReferenceSubject(const std::string& name, const std::vector<DType>& compute_dtypes) {
  // One thread, as the recorder has it, and no second matrix library: sums keep one order on every machine.
  at::set_num_threads(1);
  at::globalContext().setUserEnabledMkldnn(false);

  capabilities_.name = name;
  capabilities_.device = "cpu";
  capabilities_.versions = {std::string("torch ") + TORCH_VERSION};
  capabilities_.models = network_names();
  capabilities_.compute_dtypes = compute_dtypes;
  capabilities_.weight_dtypes = {DType::kF32, DType::kF16, DType::kBF16};
  capabilities_.caches = {CacheKind::kNone, CacheKind::kDynamic, CacheKind::kStatic};
  capabilities_.residencies = {Residency::kResident, Residency::kOffloaded};
  capabilities_.forms = known_forms();
  capabilities_.can_reorder = true;
  capabilities_.can_quantize_nf4 = true;
}

std::unique_ptr<Model> ReferenceSubject::load(const ModelConfig& config, std::shared_ptr<const WeightSource> source,
                                              const LoadOptions& options) {
  const std::string where = "load of " + config.id();
  if (!holds(capabilities_.compute_dtypes, options.compute))
    throw UnsupportedError(where, capabilities_.name + " does not compute in " + dtype_name(options.compute).data());
  if (!holds(capabilities_.weight_dtypes, options.weights))
    throw UnsupportedError(where, "the reference does not hold weights in " + std::string(dtype_name(options.weights)));
  const std::string& kind = options.quantization;
  if (!kind.empty() && kind != "nf4" && kind != "nf4dq")
    throw UnsupportedError(where, "the reference quantises to nf4 and nf4dq (asked for '" + kind + "')");
  if (kind.empty() && !options.quantized.empty()) throw InputError(where, "names weights to quantise, and not to what");
  return translated(where, [&]() -> std::unique_ptr<Model> {
    std::unique_ptr<Network> network = make_network(config);
    const auto memory = std::make_shared<MemoryCount>();
    std::unique_ptr<WeightStore> weights = open_store(config, source, options, memory);
    return std::make_unique<ReferenceModel>(std::make_shared<const LoadedModel>(
        LoadedModel{config.id(), std::move(network), std::move(weights), memory, scalar_type(options.compute)}));
  });
}

OpResult ReferenceSubject::run_op(const OpCall& call) {
  return translated("op " + call.op, [&] { return run_reference_op(call); });
}

}  // namespace assay::reference
