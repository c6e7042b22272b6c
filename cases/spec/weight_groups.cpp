#include "cases/spec/weight_groups.hpp"

#include <algorithm>
#include <set>

#include "cases/spec/model_spec.hpp"

namespace assay {

namespace {

// "model.layers.12.mamba.D" -> "layers.12." and "mamba.D"; both empty outside the layers.
struct InLayer {
  std::string layer, rest;
};

InLayer in_layer(const std::string& name) {
  const std::string marker = "layers.";
  const size_t begin = name.find(marker);
  if (begin == std::string::npos || (begin > 0 && name[begin - 1] != '.')) return {};
  const size_t digits = begin + marker.size(), end = name.find_first_not_of("0123456789", digits);
  if (end == digits || end == std::string::npos || name[end] != '.') return {};
  return {name.substr(begin, end + 1 - begin), name.substr(end + 1)};
}

std::string group_name(const WeightSpec& spec) {
  const auto [layer, rest] = in_layer(spec.name);
  if (layer.empty()) return spec.role == Role::kEmbedding ? "embedding" : "head";
  const std::string name = layer.substr(0, layer.size() - 1);
  return rest.starts_with("shared_transf") ? name + " shared block" : name;
}

}  // namespace

std::vector<WeightGroup> weight_groups(const ModelConfig& config) {
  std::vector<WeightGroup> groups;
  std::set<std::string> call_sites;  // layers that project a shared block's output
  bool has_head = false;
  for (const WeightSpec& spec : model_spec(config.model).weights(config)) {
    const std::string name = group_name(spec);
    auto group =
        std::find_if(groups.begin(), groups.end(), [&](const WeightGroup& known) { return known.name == name; });
    if (group == groups.end()) group = groups.insert(groups.end(), {name, {}, 0, 1});
    group->weights.push_back(spec.name);
    group->elements += element_count(spec.shape);
    has_head = has_head || spec.role == Role::kHead;
    if (const auto [layer, rest] = in_layer(spec.name); rest == "linear.weight") call_sites.insert(layer);
  }
  std::vector<WeightGroup*> blocks;
  for (WeightGroup& group : groups) {
    if (group.name == "embedding" && !has_head) group.uses = 2;
    if (group.name.ends_with(" shared block")) blocks.push_back(&group);
  }
  // Call sites take the blocks in turn.
  const auto sites = static_cast<int64_t>(call_sites.size()), count = static_cast<int64_t>(blocks.size());
  for (int64_t b = 0; b < count; ++b) blocks[static_cast<size_t>(b)]->uses = (sites - b + count - 1) / count;
  return groups;
}

}  // namespace assay
