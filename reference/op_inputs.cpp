#include "reference/op_inputs.hpp"

#include <cmath>

#include "cases/spec/error.hpp"
#include "reference/tensor.hpp"

namespace assay::reference {

void OpInputs::refuse(const std::string& name, const std::string& problem) const {
  throw InputError("op " + call_.op + ", " + name, problem);
}

void OpInputs::bind(const std::string& name, const HostTensor& value, std::string_view letters) {
  const Shape& shape = value.shape();
  bool fits = shape.size() == letters.size();
  std::string expected;
  for (size_t i = 0; i < letters.size(); ++i) {
    const auto known = sizes_.find(letters[i]);
    expected +=
        (i > 0 ? ", " : "") + (known == sizes_.end() ? std::string(1, letters[i]) : std::to_string(known->second));
    fits = fits && shape[i] >= 1 && (known == sizes_.end() || known->second == shape[i]);
  }
  if (!fits) refuse(name, "has shape " + to_string(shape) + ", not [" + expected + "]");
  for (size_t i = 0; i < letters.size(); ++i) sizes_[letters[i]] = shape[i];
}

at::Tensor OpInputs::tensor(const std::string& name, std::string_view letters) {
  asked_inputs_.insert(name);
  const HostTensor& value = call_.required(name);
  if (value.dtype() != DType::kF32 && value.dtype() != DType::kF64)
    refuse(name, "has dtype " + std::string(dtype_name(value.dtype())) + ", not float32 or float64");
  if (first_ == nullptr) first_ = &value;
  if (value.dtype() != first_->dtype())
    refuse(name, "has dtype " + std::string(dtype_name(value.dtype())) + ", the inputs before it " +
                     std::string(dtype_name(first_->dtype())));
  bind(name, value, letters);
  return to_aten(value);
}

at::Tensor OpInputs::find(const std::string& name, std::string_view letters) {
  asked_inputs_.insert(name);
  return call_.input(name) == nullptr ? at::Tensor() : tensor(name, letters);
}

at::Tensor OpInputs::ids(const std::string& name, std::string_view letters) {
  asked_inputs_.insert(name);
  const HostTensor& value = call_.required(name);
  if (value.dtype() != DType::kI64) refuse(name, "has dtype " + std::string(dtype_name(value.dtype())) + ", not int64");
  bind(name, value, letters);
  return to_aten(value);
}

at::Tensor OpInputs::find_mask(const std::string& name, std::string_view letters, const at::Tensor& like) {
  asked_inputs_.insert(name);
  const HostTensor* value = call_.input(name);
  if (value == nullptr) return {};
  if (value->dtype() != DType::kU8)
    refuse(name, "has dtype " + std::string(dtype_name(value->dtype())) + ", not uint8");
  bind(name, *value, letters);
  const at::Tensor mask = to_aten(*value);
  if (mask.max().item<uint8_t>() > 1) refuse(name, "holds a value other than 0 and 1");
  return mask.to(like.scalar_type());
}

double OpInputs::attribute(const std::string& name, double otherwise) {
  asked_attributes_.insert(name);
  return call_.attribute(name, otherwise);
}

int64_t OpInputs::count_attribute(const std::string& name, int64_t otherwise) {
  const double value = attribute(name, static_cast<double>(otherwise));
  if (!(value >= 1) || value != std::floor(value) || value > 1e9)
    refuse(name, "is " + std::to_string(value) + ", not a whole number of 1 or more");
  return static_cast<int64_t>(value);
}

void OpInputs::finish() const {
  for (const NamedTensor& input : call_.inputs)
    if (!asked_inputs_.contains(input.name)) refuse(input.name, "is not an input of this op");
  for (const auto& [name, value] : call_.attributes)
    if (!asked_attributes_.contains(name)) refuse(name, "is not an attribute of this op");
}

}  // namespace assay::reference
