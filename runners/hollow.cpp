#include "runners/hollow.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cases/spec/model_spec.hpp"
#include "runners/leg_plan.hpp"

namespace assay {

namespace {

constexpr int64_t kTokens = 64;  // a prefix shows it as well as a long input
constexpr double kMostlyZero = 0.5;

Trace trace_of(Model& model, const Input& input, const Capabilities& capabilities) {
  SessionOptions options;
  if (!capabilities.caches.empty()) options.cache = capabilities.caches.front();
  if (std::count(capabilities.caches.begin(), capabilities.caches.end(), CacheKind::kDynamic))
    options.cache = CacheKind::kDynamic;
  RowPlan row;
  row.tokens = input.tokens;
  if (static_cast<int64_t>(row.tokens.size()) > kTokens) row.tokens.resize(kTokens);
  const auto columns = static_cast<int64_t>(row.tokens.size());
  if (options.cache == CacheKind::kStatic) options.limit = columns;
  Call call;
  call.tokens = token_block({row}, 0, 0, columns);
  return model.start(options)->forward(call);
}

}  // namespace

std::string hollow_reason(const Trace& a, const Trace& b, const std::set<std::string>& sparse) {
  for (const NamedTensor& probe : a.probes) {
    int64_t zeros = 0;
    for (int64_t i = 0; i < probe.value.count(); ++i) zeros += probe.value.at(i) == 0;
    if (zeros == probe.value.count()) return fmt::format("{} is zero everywhere", probe.name);
    if (!sparse.contains(probe.name) &&
        static_cast<double>(zeros) > kMostlyZero * static_cast<double>(probe.value.count()))
      return fmt::format("{} is zero in {} of {} elements", probe.name, zeros, probe.value.count());
    const HostTensor* other = b.find(probe.name);
    if (!other) return fmt::format("{} is not there for every input", probe.name);
    // Rows of one trace: [1, L, ...], so the shorter one is a prefix in memory.
    const int64_t common = std::min(probe.value.count(), other->count());
    bool differs = false;
    for (int64_t i = 0; i < common && !differs; ++i) differs = probe.value.at(i) != other->at(i);
    if (!differs) return fmt::format("{} does not change when the input changes", probe.name);
  }
  return a.probes.empty() ? "no probe was returned" : "";
}

std::string hollow_reason(Model& model, const ModelConfig& config, const Capabilities& capabilities) {
  std::vector<const Input*> inputs;
  for (const auto& [name, input] : config.inputs) inputs.push_back(&input);
  std::stable_sort(inputs.begin(), inputs.end(),
                   [](const Input* a, const Input* b) { return a->tokens.size() > b->tokens.size(); });
  const auto other = std::find_if(inputs.begin(), inputs.end(), [&inputs](const Input* input) {
    return !input->tokens.empty() && input->tokens.front() != inputs.front()->tokens.front();
  });
  if (other == inputs.end())
    return fmt::format("config {} has no two inputs that differ from the first token on", config.id());
  std::set<std::string> sparse;
  for (const ProbeSpec& probe : model_spec(config.model).probes(config))
    if (probe.is_sparse) sparse.insert(probe.name);
  const std::string reason =
      hollow_reason(trace_of(model, *inputs.front(), capabilities), trace_of(model, **other, capabilities), sparse);
  return reason.empty() ? "" : fmt::format("config {}: {}", config.id(), reason);
}

}  // namespace assay
