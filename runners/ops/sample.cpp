#include "runners/ops/sample.hpp"

#include <algorithm>
#include <cstring>
#include <set>

#include "cases/spec/error.hpp"

namespace assay {

namespace {

const OpTensor* output_of(const OpSpec& spec, const std::string& name) {
  for (const OpTensor& output : spec.outputs)
    if (output.name == name) return &output;
  return nullptr;
}

}  // namespace

Entries entries_at_ends(const OpSpec& spec, const OpPoint& point, const std::vector<std::string>& sizes,
                        const std::vector<int64_t>& marks) {
  std::map<std::string, std::set<int64_t>> chosen;
  for (const std::string& size : sizes) {
    const int64_t count = point.sizes.at(size);
    for (const int64_t entry : {int64_t{0}, int64_t{1}, count / 2, count - 2, count - 1})
      chosen[size].insert(std::clamp(entry, int64_t{0}, count - 1));
  }
  std::vector<OpTensor> tensors = spec.inputs;
  tensors.insert(tensors.end(), spec.outputs.begin(), spec.outputs.end());
  for (const OpTensor& tensor : tensors) {
    const int64_t count = element_count(point.shape_of(tensor));
    int64_t inner = 1;
    for (size_t at = tensor.sizes.size(); at-- > 0;) {
      const int64_t entries = point.sizes.at(tensor.sizes[at]);
      if (const auto found = chosen.find(tensor.sizes[at]); found != chosen.end())
        for (const int64_t mark : marks)
          if (mark < count)
            for (const int64_t flat : {mark - 1, mark}) found->second.insert(flat / inner % entries);
      inner *= entries;
    }
  }
  Entries entries;
  for (const auto& [size, values] : chosen) entries[size] = {values.begin(), values.end()};
  return entries;
}

Sample::Sample(const OpSpec& spec, const OpPoint& whole, Entries entries)
    : spec_(spec), whole_(whole), part_(whole), entries_(std::move(entries)) {
  for (const auto& [size, values] : entries_) part_.sizes.at(size) = static_cast<int64_t>(values.size());
  if (!is_whole()) check_point(spec_, part_, "the sampled call of op " + spec_.name);
}

HostTensor Sample::cut(const HostTensor& whole, const OpTensor& tensor) const {
  const size_t dimensions = tensor.sizes.size();
  size_t outer = 0;  // dimensions up to the last sampled one
  for (size_t i = 0; i < dimensions; ++i)
    if (entries_.contains(tensor.sizes[i])) outer = i + 1;
  if (outer == 0) return whole;
  HostTensor result(whole.dtype(), part_.shape_of(tensor));
  const Shape &from = whole.shape(), &to = result.shape();
  const auto inner = from.begin() + static_cast<std::ptrdiff_t>(outer);
  const size_t bytes = static_cast<size_t>(element_count({inner, from.end()})) * size_of(whole.dtype());
  const int64_t blocks = element_count({to.begin(), to.begin() + static_cast<std::ptrdiff_t>(outer)});
  for (int64_t block = 0; block < blocks; ++block) {
    int64_t rest = block, source = 0, stride = 1;
    for (size_t i = outer; i-- > 0;) {
      const int64_t at = rest % to[i];
      const auto sampled = entries_.find(tensor.sizes[i]);
      source += stride * (sampled == entries_.end() ? at : sampled->second[static_cast<size_t>(at)]);
      rest /= to[i];
      stride *= from[i];
    }
    std::memcpy(result.bytes().data() + static_cast<size_t>(block) * bytes,
                whole.bytes().data() + static_cast<size_t>(source) * bytes, bytes);
  }
  return result;
}

OpCall Sample::cut(const OpCall& call) const {
  OpCall part{.op = call.op, .form = call.form, .inputs = {}, .attributes = call.attributes};
  for (const NamedTensor& input : call.inputs) {
    const OpTensor& tensor = *spec_.input(input.name);
    part.inputs.push_back({input.name, cut(input.value, tensor)});
    const auto sampled = entries_.find(tensor.indexes);
    if (sampled == entries_.end()) continue;
    for (int64_t& id : part.inputs.back().value.values<int64_t>()) {
      const auto place = std::lower_bound(sampled->second.begin(), sampled->second.end(), id);
      if (place == sampled->second.end() || *place != id)
        throw InputError("op " + call.op + ", " + input.name, std::to_string(id) + " is none of the sampled entries");
      id = place - sampled->second.begin();
    }
  }
  return part;
}

OpResult Sample::cut(const OpResult& result) const {
  OpResult part{.outputs = {}, .kernels = result.kernels};
  for (const NamedTensor& output : result.outputs) {
    const OpTensor* tensor = output_of(spec_, output.name);
    const bool is_whole_one = tensor != nullptr && output.value.shape() == whole_.shape_of(*tensor);
    part.outputs.push_back({output.name, is_whole_one ? cut(output.value, *tensor) : output.value});
  }
  return part;
}

golden::Finding Sample::in_whole(golden::Finding finding) const {
  const OpTensor* tensor = output_of(spec_, finding.probe);
  if (tensor == nullptr) return finding;
  const auto place = [this](const std::string& size, int64_t at) {
    const auto sampled = entries_.find(size);
    return sampled == entries_.end() ? at : sampled->second.at(static_cast<size_t>(at));
  };
  finding.row = place(tensor->sizes.at(0), finding.row);
  for (size_t i = 0; i < finding.index.size(); ++i) finding.index[i] = place(tensor->sizes.at(i + 1), finding.index[i]);
  return finding;
}

}  // namespace assay
