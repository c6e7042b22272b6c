#include "runners/bench/model_cost.hpp"

#include <algorithm>
#include <map>
#include <string>

#include "cases/spec/model_spec.hpp"
#include "cases/spec/weight_groups.hpp"

namespace assay::bench {

namespace {

// Every expert by itself, "experts.7.w1.weight", or all in one tensor [E, ...]; a convolution's [C, 1, K] is none.
bool is_of_experts(const WeightSpec& spec) {
  const size_t at = spec.name.find("experts.");
  if (at != std::string::npos && spec.name.find_first_of("0123456789", at) == at + 8) return true;
  return spec.shape.size() == 3 && spec.role != Role::kConv;
}

int64_t experts_of(const std::vector<WeightSpec>& specs) {
  int64_t count = 0;
  for (const WeightSpec& spec : specs)
    if (spec.role == Role::kRouter) count = std::max(count, spec.shape[0]);
  return count;
}

int64_t experts_per_token(const ModelConfig& config) {
  const nlohmann::json& fields =
      config.fields.contains("text_config") ? config.fields.at("text_config") : config.fields;
  return fields.value("num_experts_per_tok", int64_t{1});
}

}  // namespace

ModelCost model_cost(const ModelConfig& config, int64_t rows, int64_t columns, int64_t past) {
  const std::vector<WeightSpec> specs = model_spec(config.model).weights(config);
  std::map<std::string, const WeightSpec*> by_name;
  for (const WeightSpec& spec : specs) by_name[spec.name] = &spec;
  const auto tokens = static_cast<double>(rows * columns);
  const auto experts = static_cast<double>(experts_of(specs));
  const auto chosen = static_cast<double>(experts_per_token(config));

  ModelCost cost;
  for (const WeightGroup& group : weight_groups(config))
    for (const std::string& name : group.weights) {
      const WeightSpec& spec = *by_name.at(name);
      const auto elements = static_cast<double>(element_count(spec.shape));
      double uses = static_cast<double>(group.uses), reached = 1, used_by_a_token = 1;
      if (spec.role == Role::kEmbedding) {
        cost.weight_bytes += 4 * tokens * static_cast<double>(spec.shape.back());
        uses -= 1;  // what is left is its use as the head
      }
      if (experts > 0 && is_of_experts(spec)) {
        reached = std::min(1.0, tokens * chosen / experts);
        used_by_a_token = chosen / experts;
      }
      cost.weight_bytes += 4 * uses * reached * elements;
      if (spec.shape.size() >= 2 && spec.role != Role::kConv && spec.role != Role::kALog)
        cost.flops += 2 * tokens * uses * used_by_a_token * elements;
    }
  for (const ProbeSpec& probe : model_spec(config.model).probes(config)) {
    if (!probe.is_state) continue;
    const auto bytes = static_cast<double>(4 * rows * element_count(probe.shape));
    const bool is_of_columns = !probe.follows.empty();
    cost.state_bytes += is_of_columns ? bytes * static_cast<double>(past + columns) : bytes * (past > 0 ? 2 : 1);
  }
  return cost;
}

}  // namespace assay::bench
