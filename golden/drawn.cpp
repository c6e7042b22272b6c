#include "golden/drawn.hpp"

#include <algorithm>

#include "cases/spec/digest.hpp"
#include "cases/spec/model_spec.hpp"
#include "cases/spec/weights.hpp"
#include "golden/kinds.hpp"

namespace assay::golden {

const std::map<std::string, std::string>& DrawnWeights::digests(const ModelConfig& config) {
  const std::lock_guard lock(mutex_);
  const auto [found, is_new] = held_.try_emplace(config.id() + " " + config.digest);
  if (!is_new || config.weights.kind != WeightsRecipe::Kind::kSynthetic) return found->second;
  const std::vector<WeightSpec> table = model_spec(config.model).weights(config);
  int64_t elements = 0;
  for (const WeightSpec& spec : table) elements += element_count(spec.shape);
  if (elements > kMostDrawnElements) return found->second;
  for (const WeightSpec& spec : table)
    found->second[spec.name] = sha256(draw(spec, config.weights.seed).bytes()).substr(0, 16);
  return found->second;
}

std::string DrawnWeights::stale_reason(const Golden& golden, const ModelConfig& config) {
  const Kind* kind = find_kind(golden.kind);
  const auto is_as_drawn = [&](const std::string& name) {
    if (kind && kind->is_rounded)
      return std::find(golden.float32_weights.begin(), golden.float32_weights.end(), name) !=
             golden.float32_weights.end();
    return !golden.quantization || !golden.quantization->weights.contains(name);
  };
  const auto& drawn = digests(config);
  if (drawn.empty()) return "";
  for (const auto& [name, digest] : golden.weight_digests) {
    const auto now = drawn.find(name);
    if (now == drawn.end()) return "recorded with the weight " + name + ", which the config does not have";
    if (now->second != digest && is_as_drawn(name)) return "recorded from other weights (" + name + " is drawn anew)";
  }
  for (const auto& [name, digest] : drawn)
    if (!golden.weight_digests.contains(name)) return "recorded without the weight " + name;
  return "";
}

}  // namespace assay::golden
