// Judge: beam searches, by the golden's search and by whole runs of the sequences that they found.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cases/spec/error.hpp"
#include "golden/beams.hpp"
#include "runners/judge.hpp"

namespace assay {

namespace {

// Of one logit after the prompt.
double logit_bound(const golden::Bounds& bounds, const golden::Golden& golden) {
  return bounds.element.at(golden.prompt.size() - 1);
}

golden::Tally compare_sum(double expected, double got, double bound, int64_t position, const std::string& detail) {
  golden::Tally tally{.probes = 1, .elements = 1};
  const double difference = std::abs(got - expected);
  tally.used = difference / bound;
  tally.used_by = "beams";
  if (difference <= bound) return tally;
  tally.first.emplace();
  tally.first->probe = "beams";
  tally.first->position = position;
  tally.first->expected = expected;
  tally.first->got = got;
  tally.first->bound = bound;
  tally.first->bad = tally.first->of = 1;
  tally.first->what = "value";
  tally.first->detail = detail;
  return tally;
}

}  // namespace

void Judge::judge_steps(const std::string& leg, const RowPlan& row, size_t b, const golden::BeamRecord& record,
                        const std::vector<golden::BeamStep>& got) {
  const golden::Golden& golden = row.golden->golden;
  const golden::Record* logits = golden.probe("logits");
  if (!logits) throw InputError("golden " + golden.id(), "holds no logits, so its beams cannot be judged");
  const auto prompt = static_cast<int64_t>(golden.prompt.size());
  const std::vector<double> limits = golden::beam_bounds(record, rule_, logit_bound(bounds(*logits), golden));
  const golden::BeamJudgement judgement = golden::judge_beams(record, got, limits, prompt);
  const int64_t step = judgement.tally.first ? judgement.tally.first->position - prompt : 0;
  add(judgement.tally, leg, step, static_cast<int64_t>(b));
  std::string text = fmt::format("leg {} row {}: {} of {} steps of the beam search judged", leg, b, judgement.judged,
                                 record.steps.size());
  if (judgement.near_tie) {
    const auto at = static_cast<size_t>(*judgement.near_tie);
    const std::vector<float>& sums = record.steps[at].log_probs;
    text += fmt::format(", near-tie at step {} (the last kept sum is {:.3g} above the first dropped)", at,
                        sums[sums.size() - 2] - sums.back());
  }
  notes_.push_back(text);
  if (hollow_.empty() && !judgement.hollow.empty())
    hollow_ = fmt::format("leg {} row {}: {}", leg, b, judgement.hollow);
}

void Judge::beams(const LegPlan& plan, const BeamRun& run) {
  for (size_t b = 0; b < run.steps.size() && !tally_.first; ++b) {
    const golden::Golden& golden = plan.rows[b].golden->golden;
    if (!golden.beams) throw InputError("golden " + golden.id(), "holds no beam search");
    judge_steps(plan.name, plan.rows[b], b, *golden.beams, run.steps[b]);
  }
}

void Judge::beams_again(const BeamRun& run, const LegTrace& whole) {
  const LegTrace& found = run.trace;
  if (tally_.first || whole.calls.empty()) return;
  const HostTensor* logits = whole.calls.back().trace.find("logits");
  const size_t width = found.rows.size() / run.steps.size();
  for (size_t b = 0; logits && b < found.rows.size() && !tally_.first; ++b) {
    const std::vector<golden::BeamStep>& steps = run.steps[b / width];
    const golden::Golden& golden = found.rows[b].golden->golden;
    const auto count = static_cast<int64_t>(steps.size());
    const double sum = sum_of_last(*logits, found.rows[b], static_cast<int64_t>(b), count);
    const double bound =
        golden::beam_bounds(*golden.beams, rule_, logit_bound(bounds(*golden.probe("logits")), golden)).back();
    add(compare_sum(sum, steps.back().log_probs[b % width], bound, static_cast<int64_t>(golden.prompt.size()),
                    "sum of a beam against a whole run of its sequence"),
        found.plan->name + " = " + whole.plan->name, count - 1, static_cast<int64_t>(b));
  }
  if (!tally_.first) agree(whole, found);
}

void Judge::exhaustive(const LegPlan& plan, const ExhaustiveRun& run) {
  const RowPlan& row = plan.rows.at(0);
  const golden::Golden& golden = row.golden->golden;
  if (!golden.beams) throw InputError("golden " + golden.id(), "holds no beam search");
  golden::BeamRecord record = *golden.beams;
  record.steps.resize(2);
  const auto width = static_cast<int64_t>(record.scores.size());
  const HostTensor& logits = *run.trace.calls.at(0).trace.find("logits");

  const BeamChoice first = choose_beams({0.0}, {run.first}, width);
  std::vector<std::vector<double>> after;
  for (const int64_t token : first.step.tokens) after.push_back(log_softmax(logits, token, 0));
  const BeamChoice second = choose_beams(first.sums, after, width);
  judge_steps(plan.name, row, 0, record, {first.step, second.step});

  double best = -INFINITY;
  for (size_t v = 0; v < run.first.size(); ++v) {
    const std::vector<double> next = log_softmax(logits, static_cast<int64_t>(v), 0);
    best = std::max(best, run.first[v] + *std::max_element(next.begin(), next.end()));
  }
  notes_.push_back(
      fmt::format("leg {}: of {} sequences of two tokens the best has the sum {:.6g}, the best of {} beams "
                  "{:.6g}",
                  plan.name, run.first.size() * run.first.size(), best, width, second.sums[0]));
}

void Judge::exhaustive_again(const ExhaustiveRun& run, const LegTrace& whole) {
  if (tally_.first || whole.calls.empty()) return;
  const LegTrace& found = run.trace;
  const std::string leg = found.plan->name + " = " + whole.plan->name;
  const golden::Golden& golden = found.rows.at(0).golden->golden;
  const golden::Record& record = *golden.probe("logits");
  const CallRecord& step = found.calls.at(0);
  const HostTensor* expected = whole.calls.back().trace.find("logits");
  const HostTensor* got = step.trace.find("logits");
  const auto prompt = static_cast<int64_t>(golden.prompt.size());
  // Bounded as the logits after the prompt are: the golden has none for the token after it.
  for (int64_t v = 0; expected && got && v < static_cast<int64_t>(found.rows.size()) && !tally_.first; ++v) {
    golden::Tally tally = golden::compare_legs(record, bounds(record), *expected, v, prompt, *got, v, 0, prompt - 1, 1);
    if (tally.first) tally.first->position = prompt;
    add(std::move(tally), leg, step.step, v);
  }
  for (size_t v = 0; v < found.rows.size() && !tally_.first; ++v) agree_states(whole, v, found, v, leg);
}

}  // namespace assay
