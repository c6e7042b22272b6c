#include "fast/blocks/weights.hpp"

#include <cmath>
#include <utility>

#include "cases/spec/error.hpp"
#include "cases/spec/model_spec.hpp"

namespace assay::fast {

namespace {

HostTensor as_float32(const std::string& name, HostTensor read) {
  if (read.dtype() == DType::kI64 || read.dtype() == DType::kI32 || read.dtype() == DType::kU8)
    throw InputError(name, "weight has dtype " + std::string(dtype_name(read.dtype())) + ", expected floating point");
  HostTensor tensor(DType::kF32, read.shape());
  const auto values = tensor.values<float>();
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(read.at(static_cast<int64_t>(i)));
  return tensor;
}

void check_finite(const std::string& name, const HostTensor& tensor) {
  const auto values = tensor.values<float>();
  for (size_t i = 0; i < values.size(); ++i)
    if (!std::isfinite(values[i])) {
      std::string at;
      for (int64_t coordinate : coordinates(static_cast<int64_t>(i), tensor.shape()))
        at += (at.empty() ? "" : ", ") + std::to_string(coordinate);
      throw InputError(name, "element [" + at + "] is not finite");
    }
}

}  // namespace

Weights::Weights(const ModelConfig& config, const WeightSource& source, Arena& arena, cudaStream_t stream) {
  const std::vector<WeightSpec> table = model_spec(config.model).weights(config);
  for (const WeightSpec& spec : table) {
    if (!source.has(spec.name))
      throw InputError(spec.name, "the weight is missing", "config " + config.id() + " needs it");
    HostTensor tensor = source.read(spec.name);
    if (tensor.shape() != spec.shape)
      throw InputError(spec.name, "shape " + to_string(tensor.shape()) + ", expected " + to_string(spec.shape));
    if (tensor.dtype() != DType::kF32) tensor = as_float32(spec.name, std::move(tensor));
    check_finite(spec.name, tensor);

    const Tensor<float> resident = upload<float>(arena, tensor, spec.name, stream);
    weights_[spec.name] = {resident.data, DType::kF32, spec.shape};
    if (spec.role == Role::kALog) {
      for (float& value : tensor.values<float>()) value = -std::exp(value);
      check_finite("-exp(" + spec.name + ")", tensor);
      decays_[spec.name] = upload<float>(arena, tensor, "-exp(" + spec.name + ")", stream).data;
    }
  }
  for (const std::string& name : source.names())
    if (!weights_.contains(name) && name != "lm_head.weight")
      throw InputError(name, "unexpected weight", "config " + config.id() + " has no tensor of this name");
}

const Weight& Weights::at(const std::string& name) const {
  const auto found = weights_.find(name);
  if (found == weights_.end()) throw InputError(name, "the model has no weight of this name");
  return found->second;
}

Weight Weights::optional(const std::string& name) const {
  const auto found = weights_.find(name);
  return found == weights_.end() ? Weight{} : found->second;
}

const float* Weights::decay(const std::string& name) const {
  const auto found = decays_.find(name);
  if (found == decays_.end()) throw InputError(name, "the model has no decay of this name");
  return found->second;
}

}  // namespace assay::fast
