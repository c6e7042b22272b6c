#include "reference/weight_store.hpp"

#include <set>

#include "cases/spec/error.hpp"
#include "cases/spec/model_spec.hpp"
#include "reference/tensor.hpp"

namespace assay::reference {

namespace {

at::Tensor checked(const WeightSpec& spec, const WeightSource& source, DType rounded_to) {
  const HostTensor value = source.read(spec.name);
  const std::string where = source.where(spec.name);
  if (value.shape() != spec.shape)
    throw InputError(where, "has shape " + to_string(value.shape()) + ", the config asks for " + to_string(spec.shape));
  if (value.dtype() != DType::kF32 && value.dtype() != DType::kF16 && value.dtype() != DType::kBF16)
    throw InputError(where, "is stored as " + std::string(dtype_name(value.dtype())),
                     "weights are float32, float16 or bfloat16");
  const at::Tensor weight = to_aten(value).to(scalar_type(rounded_to)).to(at::kFloat);
  const at::Tensor bad = at::isfinite(weight).logical_not().flatten().nonzero();
  if (bad.numel() > 0) {
    const int64_t flat = bad[0].item<int64_t>();
    throw InputError(where, "is not finite at " + to_string(coordinates(flat, spec.shape)) + " when held in " +
                                std::string(dtype_name(rounded_to)));
  }
  return weight;
}

}  // namespace

WeightStore::WeightStore(const ModelConfig& config, const WeightSource& source, DType rounded_to)
    : model_(config.id()) {
  std::set<std::string> known;
  const std::vector<WeightSpec> specs = model_spec(config.model).weights(config);
  for (const WeightSpec& spec : specs) known.insert(spec.name);
  for (const std::string& name : source.names())
    if (!known.contains(name) && name != "lm_head.weight")
      throw InputError("weight " + name, "is not a tensor of " + model_, "its config.json belongs to other weights");
  for (const WeightSpec& spec : specs) {
    if (!source.has(spec.name)) throw InputError("weight " + spec.name, "is missing from the weights of " + model_);
    weights_.emplace(spec.name, checked(spec, source, rounded_to));
  }
}

const at::Tensor& WeightStore::at(const std::string& name) const {
  const auto found = weights_.find(name);
  if (found == weights_.end()) throw InputError("weight " + name, "is not a tensor of " + model_);
  return found->second;
}

at::Tensor WeightStore::find(const std::string& name) const {
  const auto found = weights_.find(name);
  return found == weights_.end() ? at::Tensor() : found->second;
}

int64_t WeightStore::bytes() const {
  int64_t bytes = 0;
  for (const auto& [name, weight] : weights_) bytes += static_cast<int64_t>(weight.nbytes());
  return bytes;
}

}  // namespace assay::reference
