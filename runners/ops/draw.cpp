#include "runners/ops/draw.hpp"

#include <algorithm>

namespace assay {

Draw::Draw(const OpSpec& spec, const OpPoint& point, const std::map<std::string, std::pair<double, double>>& ranges,
           uint64_t seed, Entries entries)
    : spec_(spec), point_(point), ranges_(ranges), seed_(seed), entries_(std::move(entries)) {
  call_.op = spec.name;
  call_.attributes = point.attributes;
  for (const std::string& size : spec.sizes)
    if (std::none_of(spec.inputs.begin(), spec.inputs.end(),
                     [&size](const OpTensor& input) { return std::ranges::count(input.sizes, size) > 0; }))
      call_.attributes[size] = static_cast<double>(point.sizes.at(size));
}

double Draw::attribute(const std::string& name, double otherwise) const {
  const auto found = point_.attributes.find(name);
  return found == point_.attributes.end() ? otherwise : found->second;
}

const OpTensor& Draw::tensor_of(const std::string& input) const {
  if (const OpTensor* tensor = spec_.input(input)) return *tensor;
  throw InputError("op " + spec_.name, "has no input '" + input + "'");
}

bool Draw::has(const std::string& input) const { return point_.has_input(tensor_of(input)); }

uint64_t Draw::key(const std::string& input) const { return fnv1a64(spec_.name + "." + input) ^ seed_; }

HostTensor& Draw::add(const std::string& input) {
  const OpTensor& tensor = tensor_of(input);
  call_.inputs.push_back({input, HostTensor(tensor.dtype, point_.shape_of(tensor))});
  return call_.inputs.back().value;
}

void Draw::ids(const std::string& input, int64_t limit) {
  if (!has(input)) return;
  HostTensor& tensor = add(input);
  Uniforms uniform(key(input));
  const auto values = tensor.values<int64_t>();
  const auto sampled = entries_.find(tensor_of(input).indexes);
  const int64_t choices = sampled == entries_.end() ? limit : static_cast<int64_t>(sampled->second.size());
  const auto choice = [&](int64_t i) {
    return sampled == entries_.end() ? i : sampled->second.at(static_cast<size_t>(i));
  };
  for (int64_t i = 0; i < tensor.count(); ++i)
    values[static_cast<size_t>(i)] =
        choice(std::min(choices - 1, static_cast<int64_t>(uniform(i) * static_cast<double>(choices))));
  values.front() = choice(choices - 1);  // both ends of the table
  if (values.size() > 1) values.back() = choice(0);
}

void Draw::mask(const std::string& input) {
  if (!has(input)) return;
  HostTensor& tensor = add(input);
  const int64_t rows = tensor.shape().at(0), length = tensor.shape().at(1);
  const auto values = tensor.values<uint8_t>();
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t t = (3 + 5 * row) % length; t < length; ++t) values[static_cast<size_t>(row * length + t)] = 1;
}

OpCall Draw::take() && {
  for (const OpTensor& input : spec_.inputs)
    if (point_.has_input(input) && !call_.input(input.name))
      throw InputError("op " + spec_.name, "its problem draws no '" + input.name + "'");
  return std::move(call_);
}

}  // namespace assay
