#include "runners/execute.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <new>
#include <set>

#include "cases/spec/error.hpp"
#include "cases/spec/model_spec.hpp"
#include "cases/spec/weights.hpp"
#include "runners/hollow.hpp"
#include "runners/leg_run.hpp"

namespace assay {

namespace {

template <class T>
bool has(const std::vector<T>& values, const T& value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

int64_t available_memory_bytes() {
  std::ifstream meminfo("/proc/meminfo");
  std::string key, unit;
  for (int64_t kibibytes = 0; meminfo >> key >> kibibytes; std::getline(meminfo, unit))
    if (key == "MemAvailable:") return kibibytes * 1024;
  return INT64_MAX;
}

// A subject that does not compute in the case's dtype computes in float32 on weights rounded to it.
LoadOptions load_options(const Case& test_case, const Capabilities& capabilities) {
  LoadOptions options;
  options.weights = dtype_from_name(test_case.dtype);
  options.compute = has(capabilities.compute_dtypes, options.weights) ? options.weights : DType::kF32;
  return options;
}

// Legs that some other leg is compared with.
bool is_named_in_agree(const Case& test_case, const LegPlan& plan) {
  return std::any_of(test_case.agree.begin(), test_case.agree.end(), [&plan](const auto& pair) {
    return pair.first == plan.leg->name || pair.second == plan.leg->name;
  });
}

bool wants_capture(const LegPlan& plan) {
  return std::any_of(plan.rows.begin(), plan.rows.end(),
                     [](const RowPlan& row) { return row.golden->golden.probes.size() > 1; });
}

}  // namespace

Verdict blank_verdict(const Case& test_case, const Capabilities& capabilities) {
  Verdict verdict;
  verdict.subject = capabilities.name;
  verdict.device = capabilities.device;
  verdict.case_id = test_case.id;
  verdict.model = test_case.model;
  verdict.config = test_case.config;
  verdict.aspect = test_case.aspect;
  verdict.tier = test_case.tier;
  verdict.dtype = test_case.dtype;
  verdict.case_digest = test_case.digest;
  return verdict;
}

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
  for (const Leg& leg : test_case.legs)
    if (!has(capabilities.caches, leg.cache))
      throw skip(SkipReason::kNoCapability,
                 fmt::format("does not have the kind of cache that leg '{}' needs", leg.name));
  for (const Leg& leg : test_case.legs)
    if (leg.beams && leg.cache != CacheKind::kNone && !capabilities.can_reorder)
      throw skip(SkipReason::kNoCapability, fmt::format("cannot reorder rows, as leg '{}' needs", leg.name));
  if (test_case.needs_memory_bytes > 0)
    if (const int64_t available = available_memory_bytes(); available < test_case.needs_memory_bytes)
      throw skip(SkipReason::kMemory, fmt::format("the case needs {} bytes of memory, {} are available",
                                                  test_case.needs_memory_bytes, available));
}

std::string fallback_reason(const std::vector<std::string>& ops, const std::vector<LegKernels>& legs) {
  const auto launched = [](const LegKernels& leg, const std::string& prefix) {
    return std::any_of(leg.kernels.begin(), leg.kernels.end(),
                       [&prefix](const std::string& kernel) { return kernel.starts_with(prefix); });
  };
  std::string missing;
  for (const std::string& op : ops)
    if (std::none_of(legs.begin(), legs.end(), [&](const LegKernels& leg) { return launched(leg, op + "_"); }))
      missing += (missing.empty() ? "" : ", ") + op;
  if (!missing.empty()) return "no own kernel ran for " + missing;
  for (const LegKernels& leg : legs)
    for (const auto& [op, form] : leg.forms)
      if (!launched(leg, op + "_" + form))
        return fmt::format("{} was asked for in its {} form; no such kernel ran", op, form);
  return "";
}

Status settle(bool has_finding, bool fell_back, bool is_hollow, double used) {
  if (has_finding) return Status::kFail;
  if (fell_back) return Status::kFallback;
  if (is_hollow) return Status::kHollow;
  return used > kMarginal ? Status::kMarginal : Status::kPass;
}

Model& Execution::load(const Case& test_case, const ModelConfig& config) {
  const LoadOptions options = load_options(test_case, subject_.capabilities());
  const std::string key =
      fmt::format("{} {} {}", config.digest, dtype_name(options.compute), dtype_name(options.weights));
  if (key != loaded_ || !model_) {
    model_.reset();  // before the next one is loaded: both may not fit
    model_ = subject_.load(config, open_weights(config), options);
    loaded_ = key;
  }
  return *model_;
}

std::string Execution::hollow(Model& model, const ModelConfig& config, const std::vector<LegPlan>& plans) {
  for (const LegPlan& plan : plans)
    for (const RowPlan& row : plan.rows)
      if (!row.golden->vacuity.empty())
        return fmt::format("golden {}: {}", row.golden->golden.id(), row.golden->vacuity);
  const auto known = hollow_.find(loaded_);
  if (known != hollow_.end()) return known->second;
  return hollow_[loaded_] = hollow_reason(model, config, subject_.capabilities());
}

std::vector<std::string> Execution::run_beams(Model& model, const ModelConfig& config, const LegPlan& plan,
                                              Judge& judge) {
  const LegOptions options{wants_capture(plan), false};
  const AfterCall after_call = [&](const CallRecord& record, const std::vector<RowPlan>& rows, const Session& session) {
    return judge.after_call(plan, record, rows, session);
  };
  const auto run_whole = [&](const LegTrace& found, const std::string& name, CacheKind cache, const auto& judge_whole) {
    if (judge.tally().first) return;
    Leg leg;
    const LegPlan whole = plan_whole(found, name, cache, leg);
    judge_whole(run_leg(model, whole, {false, true}, [](const auto&, const auto&, const Session&) { return true; }));
  };
  if (plan.leg->is_exhaustive()) {
    const ExhaustiveRun run =
        run_exhaustive_leg(model, plan, model_spec(config.model).vocabulary(config), options, after_call);
    if (!judge.tally().first) judge.exhaustive(plan, run);
    for (const auto& [name, cache] : {std::pair{"whole", CacheKind::kNone}, {"whole cached", plan.leg->cache}})
      run_whole(run.trace, name, cache, [&](const LegTrace& whole) { judge.exhaustive_again(run, whole); });
    return run.trace.kernels;
  }
  const BeamRun run = run_beam_leg(model, plan, options, after_call);
  if (!judge.tally().first) judge.beams(plan, run);
  run_whole(run.trace, "whole", plan.leg->cache, [&](const LegTrace& whole) { judge.beams_again(run, whole); });
  return run.trace.kernels;
}

void Execution::run_case(const Case& test_case, const ModelConfig& config, Verdict& verdict, Evidence* evidence) {
  const Capabilities& capabilities = subject_.capabilities();
  check_capabilities(test_case, capabilities);
  const std::vector<LegPlan> plans = plan_legs(test_case, config, capabilities, goldens_);
  std::set<std::string> digests;
  for (const LegPlan& plan : plans)
    for (const RowPlan& row : plan.rows) digests.insert(row.golden->digest);
  verdict.golden_digests.assign(digests.begin(), digests.end());

  Model& model = load(test_case, config);
  golden::Rule rule = rule_;
  if (test_case.bound) rule.factor = test_case.bound->factor;
  Judge judge(model_spec(config.model).probes(config), rule, evidence != nullptr);
  std::vector<LegTrace> traces;
  std::vector<LegKernels> kernels;
  std::map<std::string, int64_t> ran;  // expansions of each leg that ran
  std::string refused;

  for (const LegPlan& plan : plans) {
    ran.try_emplace(plan.leg->name, 0);
    const LegOptions options{wants_capture(plan), is_named_in_agree(test_case, plan)};
    try {
      if (plan.leg->beams) {
        kernels.push_back({plan.forms, run_beams(model, config, plan, judge)});
        ++ran[plan.leg->name];
        if (judge.tally().first) break;
        continue;
      }
      LegTrace trace = run_leg(model, plan, options,
                               [&](const CallRecord& record, const std::vector<RowPlan>& rows, const Session& session) {
                                 return judge.after_call(plan, record, rows, session);
                               });
      ++ran[plan.leg->name];
      judge.after_leg(plan, trace);
      kernels.push_back({plan.forms, trace.kernels});
      if (options.keep_trace) traces.push_back(std::move(trace));
    } catch (const UnsupportedError& error) {
      if (!plan.is_expanded) throw;
      refused = error.what();
      verdict.notes.push_back(fmt::format("left out: leg {}: {}", plan.name, error.what()));
    }
    if (judge.tally().first) break;
  }
  if (!judge.tally().first)
    for (const auto& [leg, count] : ran)
      if (count == 0) throw NoVerdict(Status::kSkip, fmt::format("leg '{}': {}", leg, refused), SkipReason::kNoForm);

  for (const auto& [first, second] : test_case.agree)
    for (size_t i = 0; i < traces.size(); ++i)
      for (size_t j = 0; j < traces.size(); ++j) {
        const bool is_pair = traces[i].plan->leg->name == first && traces[j].plan->leg->name == second;
        if (!is_pair || i == j || (first == second && i > j) || judge.tally().first) continue;
        judge.agree(traces[i], traces[j]);
      }

  const golden::Tally& tally = judge.tally();
  verdict.used = tally.used;
  verdict.used_by = tally.used_by;
  verdict.probes = tally.probes;
  verdict.elements = tally.elements;
  verdict.first = tally.first;
  verdict.leg = judge.leg();
  for (const std::string& note : judge.notes()) verdict.notes.push_back(note);
  std::set<std::string> launched;
  for (const LegKernels& leg : kernels) launched.insert(leg.kernels.begin(), leg.kernels.end());
  verdict.kernels.assign(launched.begin(), launched.end());

  const std::string fallback =
      capabilities.is_accelerated ? fallback_reason(model_spec(config.model).ops(config), kernels) : "";
  std::string hollow_text = judge.hollow();
  if (!tally.first && hollow_text.empty() && tally.elements == 0) hollow_text = "nothing was compared";
  if (!tally.first && hollow_text.empty()) hollow_text = hollow(model, config, plans);
  verdict.status = settle(tally.first.has_value(), !fallback.empty(), !hollow_text.empty(), tally.used);
  if (verdict.status == Status::kFail)
    verdict.reason =
        fmt::format("{} of {} out of bounds in leg {}", tally.first->what, tally.first->probe, verdict.leg);
  if (verdict.status == Status::kFallback) verdict.reason = fallback;
  if (verdict.status == Status::kHollow) verdict.reason = hollow_text;
  if (evidence && tally.first) *evidence = judge.evidence();
}

Verdict Execution::run(const Case& test_case, const ModelConfig& config, Evidence* evidence) {
  Verdict verdict = blank_verdict(test_case, subject_.capabilities());
  const auto begin = std::chrono::steady_clock::now();
  const auto ends_as = [&verdict](Status status, const std::string& reason) {
    verdict.status = status;
    verdict.reason = reason;
  };
  try {
    run_case(test_case, config, verdict, evidence);
  } catch (const NoVerdict& end) {
    ends_as(end.status, end.what());
    verdict.skip = end.skip;
  } catch (const UnsupportedError& error) {
    ends_as(Status::kSkip, error.what());
    verdict.skip = SkipReason::kNoCapability;
  } catch (const MemoryError& error) {
    ends_as(Status::kOom, error.what());
    model_.reset();  // whatever it still holds, the next case starts with all memory
  } catch (const std::bad_alloc&) {
    ends_as(Status::kOom, "std::bad_alloc");
    model_.reset();
  } catch (const std::exception& error) {
    ends_as(Status::kError, error.what());
    model_.reset();  // an engine that threw may be in any condition
  }
  verdict.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  verdict.signature = signature_of(verdict);
  return verdict;
}

}  // namespace assay
