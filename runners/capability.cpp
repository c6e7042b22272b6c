#include "runners/capability.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>

#include "cases/spec/host_tensor.hpp"
#include "runners/goldens.hpp"

namespace assay {

namespace {

template <class T>
bool has(const std::vector<T>& values, const T& value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

// Kernels that hold an op between others: the model's op, and the op whose kernel it may be.
const std::multimap<std::string, std::string> kHeldBy = {{"causal_conv1d", "short_conv"},
                                                         {"gate", "short_conv"},
                                                         {"gate", "silu_gate"},
                                                         {"gated_rms_norm", "rms_norm_gated"}};

std::vector<std::string> names_of(const std::string& op) {
  std::vector<std::string> names = {op};
  const auto [begin, end] = kHeldBy.equal_range(op);
  for (auto held = begin; held != end; ++held) names.push_back(held->second);
  return names;
}

int64_t available_memory_bytes() {
  std::ifstream meminfo("/proc/meminfo");
  std::string key, unit;
  for (int64_t kibibytes = 0; meminfo >> key >> kibibytes; std::getline(meminfo, unit))
    if (key == "MemAvailable:") return kibibytes * 1024;
  return INT64_MAX;
}

}  // namespace

void check_capabilities(const Case& test_case, const Capabilities& capabilities) {
  const auto skip = [&](SkipReason reason, const std::string& text) {
    return NoVerdict(Status::kSkip, capabilities.name + ": " + text, reason);
  };
  if (!has(capabilities.models, test_case.model))
    throw skip(SkipReason::kNoModel, fmt::format("does not have model {}", test_case.model));
  if (test_case.needs_gpu && capabilities.device.starts_with("cpu"))
    throw skip(SkipReason::kNoGpu, "the case needs a GPU, this subject runs on the CPU");
  if (!has(capabilities.weight_dtypes, dtype_from_name(test_case.dtype)))
    throw skip(SkipReason::kNoCapability, fmt::format("does not hold {} weights", test_case.dtype));
  if (!test_case.quantization.empty() && !capabilities.can_quantize_nf4)
    throw skip(SkipReason::kNoCapability, fmt::format("does not quantise weights to {}", test_case.quantization));
  for (const Leg& leg : test_case.legs)
    if (!has(capabilities.caches, leg.cache))
      throw skip(SkipReason::kNoCapability,
                 fmt::format("does not have the kind of cache that leg '{}' needs", leg.name));
  for (const Leg& leg : test_case.legs)
    if (!has(capabilities.residencies, leg.residency))
      throw skip(SkipReason::kNoCapability,
                 fmt::format("does not read layers from the source when they are needed, as leg '{}' asks", leg.name));
  for (const Leg& leg : test_case.legs)
    if (leg.beams && leg.cache != CacheKind::kNone && !capabilities.can_reorder)
      throw skip(SkipReason::kNoCapability, fmt::format("cannot reorder rows, as leg '{}' needs", leg.name));
  if (test_case.needs_memory_bytes > 0)
    if (const int64_t available = available_memory_bytes(); available < test_case.needs_memory_bytes)
      throw skip(SkipReason::kMemory, fmt::format("the case needs {} bytes of memory, {} are available",
                                                  test_case.needs_memory_bytes, available));
}

bool has_warm_steps(const LegPlan& plan) {
  const auto begin = plan.calls.begin() + (plan.calls.empty() ? 0 : 1);
  return plan.leg->free_running || std::find(begin, plan.calls.end(), 1) != plan.calls.end();
}

std::string fallback_reason(const std::vector<std::string>& ops, const std::vector<LegKernels>& legs) {
  // `what`: the rest of the name behind the op's: "_", "_update".
  const auto launched = [](const LegKernels& leg, const std::string& op, const std::string& what) {
    const std::vector<std::string> names = names_of(op);
    return std::any_of(leg.kernels.begin(), leg.kernels.end(), [&](const std::string& kernel) {
      return std::any_of(names.begin(), names.end(),
                         [&](const std::string& name) { return kernel.starts_with(name + what); });
    });
  };
  std::string missing;
  for (const std::string& op : ops)
    if (std::none_of(legs.begin(), legs.end(), [&](const LegKernels& leg) { return launched(leg, op, "_"); }))
      missing += (missing.empty() ? "" : ", ") + op;
  if (!missing.empty()) return "no own kernel ran for " + missing;
  for (const LegKernels& leg : legs) {
    for (const auto& [op, form] : leg.forms)
      if (!launched(leg, op, "_" + form))
        return fmt::format("{} was asked for in its {} form; no such kernel ran", op, form);
    if (leg.must_replay && !launched(leg, kStepGraph, "_replay"))
      return "static cache: its steps of one column were no replays of a captured graph";
  }
  return "";
}

}  // namespace assay
