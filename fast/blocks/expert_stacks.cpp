#include "fast/blocks/expert_stacks.hpp"

#include <algorithm>
#include <optional>

#include "cases/spec/host_tensor.hpp"

namespace assay::fast {

namespace {

struct ExpertName {
  std::string layer;  // "model.layers.1.feed_forward.experts."
  int64_t expert;
};

std::optional<ExpertName> parse(const std::string& name) {
  const std::string word = ".experts.";
  const size_t at = name.find(word);
  if (at == std::string::npos) return std::nullopt;
  const size_t digits = at + word.size(), end = name.find_first_not_of("0123456789", digits);
  if (end == digits || end == std::string::npos || name[end] != '.') return std::nullopt;
  return ExpertName{name.substr(0, digits), std::stoll(name.substr(digits, end - digits))};
}

}  // namespace

ExpertStacks::ExpertStacks(const std::vector<WeightSpec>& table) {
  // Each layer's tensors by expert, in the order of the table.
  std::map<std::string, std::map<int64_t, std::vector<const WeightSpec*>>> layers;
  for (const WeightSpec& spec : table)
    if (const auto name = parse(spec.name)) layers[name->layer][name->expert].push_back(&spec);

  for (const auto& [layer, experts] : layers) {
    int64_t first = 0, down = 0;
    for (const auto& [expert, parts] : experts)
      for (const WeightSpec* part : parts) {
        const bool is_last = part == parts.back();
        int64_t& end = is_last ? down : first;
        places_[part->name] = {layer + (is_last ? "down" : "first"), end};
        end += element_count(part->shape);
      }
    sizes_[layer + "first"] = first;
    sizes_[layer + "down"] = down;
  }
}

const StackedPlace* ExpertStacks::find(const std::string& name) const {
  const auto found = places_.find(name);
  return found == places_.end() ? nullptr : &found->second;
}

}  // namespace assay::fast
