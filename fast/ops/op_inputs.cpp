#include "fast/ops/op_inputs.hpp"

#include <algorithm>
#include <cmath>

#include "cases/spec/error.hpp"

namespace assay::fast {

void OpInputs::refuse(const std::string& name, const std::string& problem) const {
  throw InputError("op " + call_.op + ", " + name, problem);
}

const HostTensor& OpInputs::take(const std::string& name, std::string_view letters, DType dtype) {
  const HostTensor& tensor = call_.required(name);
  if (tensor.dtype() != dtype)
    refuse(name, "dtype " + std::string(dtype_name(tensor.dtype())) + ", expected " + std::string(dtype_name(dtype)));
  const Shape& shape = tensor.shape();
  bool fits = shape.size() == letters.size();
  std::string expected;
  for (size_t i = 0; i < letters.size(); ++i) {
    const auto known = sizes_.find(letters[i]);
    const bool is_free = known == sizes_.end();
    expected += (i == 0 ? "" : ", ") + (is_free ? std::string(1, letters[i]) : std::to_string(known->second));
    fits = fits && shape[i] >= 1 && (is_free || shape[i] == known->second);
  }
  if (!fits) refuse(name, "shape " + to_string(shape) + ", expected [" + expected + "]");
  for (size_t i = 0; i < letters.size(); ++i) sizes_[letters[i]] = shape[i];
  input_bytes_ += static_cast<double>(tensor.bytes().size());
  return tensor;
}

const float* OpInputs::required(const std::string& name, std::string_view letters) {
  asked_inputs_.insert(name);
  return upload<float>(arena_, take(name, letters, DType::kF32), name, stream_).data;
}

const float* OpInputs::optional(const std::string& name, std::string_view letters) {
  asked_inputs_.insert(name);
  return call_.input(name) == nullptr ? nullptr : required(name, letters);
}

const int64_t* OpInputs::ids(const std::string& name, std::string_view letters) {
  asked_inputs_.insert(name);
  const HostTensor& tensor = take(name, letters, DType::kI64);
  for (int64_t id : tensor.values<int64_t>()) {
    if (id < 0) refuse(name, std::to_string(id) + " is negative");
    largest_id_ = std::max(largest_id_, id);
  }
  return upload<int64_t>(arena_, tensor, name, stream_).data;
}

const uint8_t* OpInputs::optional_mask(const std::string& name, std::string_view letters) {
  asked_inputs_.insert(name);
  if (call_.input(name) == nullptr) return nullptr;
  const HostTensor& tensor = take(name, letters, DType::kU8);
  for (uint8_t value : tensor.values<uint8_t>())
    if (value > 1) refuse(name, std::to_string(value) + " is neither 0 nor 1");
  return upload<uint8_t>(arena_, tensor, name, stream_).data;
}

double OpInputs::attribute(const std::string& name, double otherwise) {
  asked_attributes_.insert(name);
  return call_.attribute(name, otherwise);
}

int64_t OpInputs::count_attribute(const std::string& name, int64_t otherwise) {
  const double value = attribute(name, static_cast<double>(otherwise));
  if (!(value >= 1) || value != std::floor(value) || value > 1e9)
    refuse(name, std::to_string(value) + " is not a whole number of at least 1");
  return static_cast<int64_t>(value);
}

void OpInputs::finish() const {
  for (const NamedTensor& input : call_.inputs)
    if (!asked_inputs_.contains(input.name)) refuse(input.name, "this op has no such input");
  for (const auto& [name, value] : call_.attributes)
    if (!asked_attributes_.contains(name)) refuse(name, "this op has no such attribute");
}

double unread_bytes(const HostTensor& ids, int64_t count, int64_t width) {
  const auto values = ids.values<int64_t>();
  const std::set<int64_t> read(values.begin(), values.end());
  return 4.0 * static_cast<double>(count - static_cast<int64_t>(read.size())) * static_cast<double>(width);
}

}  // namespace assay::fast
