#include "runners/execute.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <new>
#include <set>

#include "cases/spec/error.hpp"
#include "cases/spec/model_spec.hpp"
#include "runners/bitwise.hpp"
#include "runners/check_weights.hpp"
#include "runners/hollow.hpp"
#include "runners/judge_low.hpp"
#include "runners/leg_run.hpp"
#include "runners/output_digest.hpp"

namespace assay {

namespace {

using LegPairs = std::vector<std::pair<std::string, std::string>>;

// Legs that some other leg is compared with.
bool is_named_in(const LegPairs& agree, const LegPlan& plan) {
  return std::any_of(agree.begin(), agree.end(), [&plan](const auto& pair) {
    return pair.first == plan.leg->name || pair.second == plan.leg->name;
  });
}

// Calls compare(first, second) for every expansion of the pairs' legs until there is a finding.
template <class Compare>
void for_pairs(const LegPairs& pairs, const std::vector<LegTrace>& traces, const LegJudge& judge,
               const Compare& compare) {
  for (const auto& [first, second] : pairs)
    for (size_t i = 0; i < traces.size(); ++i)
      for (size_t j = 0; j < traces.size(); ++j)
        if (traces[i].plan->leg->name == first && traces[j].plan->leg->name == second && !judge.tally().first)
          compare(traces[i], traces[j]);
}

std::string reason_of(const golden::Finding& first, const std::string& leg) {
  if (first.what == "bits") return fmt::format("{} differs in leg {}", first.probe, leg);
  if (first.probe.starts_with("weights")) return fmt::format("{} in leg {}: {}", first.probe, leg, first.detail);
  return fmt::format("{} of {} out of bounds in leg {}", first.what, first.probe, leg);
}

// Terms of the longest sum of a linear map: the last dimension of every matrix.
int64_t longest_sum(const ModelConfig& config) {
  int64_t longest = 0;
  for (const WeightSpec& weight : model_spec(config.model).weights(config))
    if (weight.shape.size() > 1) longest = std::max(longest, weight.shape.back());
  return longest;
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

Status settle(bool has_finding, bool fell_back, bool is_hollow, double used) {
  if (has_finding) return Status::kFail;
  if (fell_back) return Status::kFallback;
  if (is_hollow) return Status::kHollow;
  return used > kMarginal ? Status::kMarginal : Status::kPass;
}

LegModels::Loaded Execution::load(const Case& test_case, const ModelConfig& config, const LegPlan& plan,
                                  LegJudge& judge) {
  const golden::Golden& golden = plan.rows.front().golden->golden;
  const LegModels::Loaded loaded =
      models_.get(config, *plan.leg, load_options(test_case, subject_.capabilities(), golden));
  if (loaded.is_new) {
    judge.take({.first = loaded.reads.after_load()}, plan.name);
    // Offloaded, asking for a weight would be a read of it beside those that are watched.
    wrong_weight_ =
        plan.leg->residency == Residency::kOffloaded ? std::nullopt : check_weights(loaded.model, config, golden);
  }
  judge.take({.first = wrong_weight_}, plan.name);
  loaded.reads.forget();
  return loaded;
}

std::string Execution::hollow(Model& model, const ModelConfig& config, const std::vector<LegPlan>& plans) {
  for (const LegPlan& plan : plans)
    for (const RowPlan& row : plan.rows)
      if (!row.golden->vacuity.empty())
        return fmt::format("golden {}: {}", row.golden->golden.id(), row.golden->vacuity);
  const auto known = hollow_.find(models_.identity());
  if (known != hollow_.end()) return known->second;
  return hollow_[models_.identity()] = hollow_reason(model, config, subject_.capabilities());
}

std::vector<std::string> Execution::run_beams(Model& model, const ModelConfig& config, const LegPlan& plan,
                                              Judge& judge, OutputDigest& outputs) {
  const LegOptions options{wants_capture(plan), false};
  const AfterCall after_call = [&](const CallRecord& record, const std::vector<RowPlan>& rows, const Session& session) {
    outputs.add(record.trace);
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

  golden::Rule rule = golden::at_width(rule_, longest_sum(config));
  if (test_case.bound) rule.factor = test_case.bound->factor;
  const std::vector<ProbeSpec> probes = model_spec(config.model).probes(config);
  Judge exact(probes, rule, evidence != nullptr);
  const DType compute = load_options(test_case, capabilities, plans.front().rows.front().golden->golden).compute;
  LowPrecisionJudge low(compute, {}, evidence != nullptr);
  if (compute != DType::kF32) check_low_precision(plans, compute);
  LegJudge& judge = compute == DType::kF32 ? static_cast<LegJudge&>(exact) : low;
  std::vector<LegTrace> traces;
  std::vector<LegKernels> kernels;
  std::map<std::string, int64_t> ran;  // expansions of each leg that ran
  std::string refused, fallback;
  Model* model = nullptr;  // that the last leg ran on
  OutputDigest outputs;

  for (const LegPlan& plan : plans) {
    ran.try_emplace(plan.leg->name, 0);
    const LegModels::Loaded loaded = load(test_case, config, plan, judge);
    model = &loaded.model;
    if (judge.tally().first) break;
    try {
      const bool is_exact = is_named_in(test_case.agree_exactly, plan);
      const LegOptions options{is_exact || wants_capture(plan), is_exact || is_named_in(test_case.agree, plan),
                               [&] { judge.take({.first = loaded.reads.after_forward(loaded.model)}, plan.name); }};
      if (plan.leg->beams) {
        kernels.push_back({plan.forms, run_beams(*model, config, plan, exact, outputs)});
        ++ran[plan.leg->name];
        if (judge.tally().first) break;
        continue;
      }
      LegTrace trace = run_leg(*model, plan, options,
                               [&](const CallRecord& record, const std::vector<RowPlan>& rows, const Session& session) {
                                 outputs.add(record.trace);
                                 return judge.after_call(plan, record, rows, session);
                               });
      ++ran[plan.leg->name];
      judge.after_leg(plan, trace);
      const bool must_replay = plan.leg->cache == CacheKind::kStatic && capabilities.forms.contains(kStepGraph);
      kernels.push_back({plan.forms, trace.kernels, must_replay && has_warm_steps(plan)});
      if (fallback.empty() && !trace.moved.empty()) fallback = fmt::format("leg {}: {}", plan.name, trace.moved);
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

  for_pairs(test_case.agree, traces, judge, [&](const LegTrace& a, const LegTrace& b) { judge.agree(a, b); });
  for_pairs(test_case.agree_exactly, traces, judge, [&](const LegTrace& a, const LegTrace& b) {
    const BitwiseResult bits = compare_bits(a, b, probes);
    judge.take({.probes = bits.probes, .elements = bits.elements, .first = bits.first},
               a.plan->name + " = " + b.plan->name);
  });

  verdict.outputs = outputs.text();
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

  if (fallback.empty() && capabilities.is_accelerated)
    fallback = fallback_reason(model_spec(config.model).ops(config), kernels);
  std::string hollow_text = judge.hollow();
  if (!tally.first && hollow_text.empty() && tally.elements == 0) hollow_text = "nothing was compared";
  if (!tally.first && hollow_text.empty()) hollow_text = hollow(*model, config, plans);
  verdict.status = settle(tally.first.has_value(), !fallback.empty(), !hollow_text.empty(), tally.used);
  if (verdict.status == Status::kFail) verdict.reason = reason_of(*tally.first, verdict.leg);
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
  } catch (const ScratchError&) {
    throw;
  } catch (const NoVerdict& end) {
    ends_as(end.status, end.what());
    verdict.skip = end.skip;
  } catch (const UnsupportedError& error) {
    ends_as(Status::kSkip, error.what());
    verdict.skip = SkipReason::kNoCapability;
  } catch (const MemoryError& error) {
    ends_as(Status::kOom, error.what());
    models_.drop();  // whatever it still holds, the next case starts with all memory
  } catch (const std::bad_alloc&) {
    ends_as(Status::kOom, "std::bad_alloc");
    models_.drop();
  } catch (const std::exception& error) {
    ends_as(Status::kError, error.what());
    models_.drop();  // an engine that threw may be in any condition
  }
  verdict.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  verdict.signature = signature_of(verdict);
  return verdict;
}

}  // namespace assay
