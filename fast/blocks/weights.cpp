#include "fast/blocks/weights.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "cases/spec/error.hpp"

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

Weights::Weights(const ModelConfig& config, const WeightSource& source, Arena& arena, cudaStream_t stream)
    : arena_(arena), stream_(stream) {
  const std::vector<WeightSpec> table = model_spec(config.model).weights(config);
  const ExpertStacks stacks(table);
  for (const WeightSpec& spec : table) {
    if (!source.has(spec.name))
      throw InputError(spec.name, "the weight is missing", "config " + config.id() + " needs it");
    HostTensor tensor = source.read(spec.name);
    if (tensor.shape() != spec.shape)
      throw InputError(spec.name, "shape " + to_string(tensor.shape()) + ", expected " + to_string(spec.shape));
    if (tensor.dtype() != DType::kF32) tensor = as_float32(spec.name, std::move(tensor));
    check_finite(spec.name, tensor);

    float* resident = allocate_weight(spec, stacks);
    upload_into(resident, tensor, spec.name, stream);
    weights_[spec.name] = {resident, DType::kF32, spec.shape};
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

float* Weights::allocate_weight(const WeightSpec& spec, const ExpertStacks& stacks) {
  const StackedPlace* place = stacks.find(spec.name);
  if (place == nullptr) return allocate<float>(arena_, spec.shape, spec.name).data;
  float*& stack = stacks_[place->stack];
  if (stack == nullptr) stack = allocate<float>(arena_, {stacks.size(place->stack)}, place->stack).data;
  return stack + place->begin;
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

const float* Weights::keep(const std::string& label, const std::vector<float>& values) {
  const void*& kept = kept_[label];
  if (kept == nullptr)
    kept = upload<float>(arena_, HostTensor({static_cast<int64_t>(values.size())}, values), label, stream_).data;
  return static_cast<const float*>(kept);
}

const int32_t* Weights::keep(const std::string& label, const std::vector<int32_t>& values) {
  const void*& kept = kept_[label];
  if (kept == nullptr) {
    HostTensor host(DType::kI32, {static_cast<int64_t>(values.size())});
    std::copy(values.begin(), values.end(), host.values<int32_t>().begin());
    kept = upload<int32_t>(arena_, host, label, stream_).data;
  }
  return static_cast<const int32_t*>(kept);
}

}  // namespace assay::fast
