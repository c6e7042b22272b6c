#include "golden/beams.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "cases/spec/error.hpp"
#include "golden/compose.hpp"

namespace assay::golden {
namespace {

using Sequence = std::vector<int64_t>;

// The kept beams after each step, each with its sum.
std::vector<std::map<Sequence, double>> kept_after_each(const std::vector<BeamStep>& steps) {
  std::vector<std::map<Sequence, double>> kept;
  for (size_t s = 0; s < steps.size(); ++s) {
    const auto sequences = sequences_of({steps.begin(), steps.begin() + static_cast<ptrdiff_t>(s) + 1});
    kept.emplace_back();
    for (size_t i = 0; i < sequences.size(); ++i) kept.back()[sequences[i]] = steps[s].log_probs[i];
  }
  return kept;
}

std::string text_of(const Sequence& sequence) { return fmt::format("{}", fmt::join(sequence, " ")); }

Finding finding(const char* what, int64_t position, double expected, double got, double bound, std::string detail) {
  Finding result{.probe = "beams", .position = position};
  result.expected = expected;
  result.got = got;
  result.bound = bound;
  result.bad = result.of = 1;
  result.what = what;
  result.detail = std::move(detail);
  return result;
}

// The step's sums against the golden's, beam by beam; a beam that is not there is a wrong choice.
void judge_step(const std::map<Sequence, double>& expected, const std::map<Sequence, double>& got, double bound,
                int64_t position, Tally& tally) {
  for (const auto& [sequence, sum] : expected) {
    const auto found = got.find(sequence);
    if (found == got.end()) {
      std::vector<std::string> others;
      for (const auto& entry : got)
        if (!expected.contains(entry.first)) others.push_back(text_of(entry.first));
      tally.used = std::numeric_limits<double>::infinity();
      if (!tally.first)
        tally.first = finding("token", position, static_cast<double>(sequence.back()), std::nan(""), bound,
                              fmt::format("expected the beam {} (sum {:.7g}), kept instead: {}", text_of(sequence), sum,
                                          fmt::join(others, "; ")));
      continue;
    }
    ++tally.elements;
    const double difference = std::abs(found->second - sum);
    tally.used = std::max(tally.used, bound > 0 ? difference / bound : difference > 0 ? INFINITY : 0);
    if (!(difference <= bound) && !tally.first)
      tally.first = finding("value", position, sum, found->second, bound, "sum of beam " + text_of(sequence));
  }
}

BeamStep step_of(const nlohmann::json& step) {
  BeamStep result;
  result.sources = step.at("sources").get<std::vector<int64_t>>();
  result.tokens = step.at("tokens").get<std::vector<int64_t>>();
  result.log_probs = step.at("log_probs").get<std::vector<float>>();
  return result;
}

}  // namespace

std::optional<Input::Beams> beams_of(const Golden& golden) {
  if (!golden.beams) return std::nullopt;
  return Input::Beams{static_cast<int64_t>(golden.beams->scores.size()),
                      static_cast<int64_t>(golden.beams->steps.size())};
}

std::vector<Sequence> sequences_of(const std::vector<BeamStep>& steps) {
  std::vector<Sequence> sequences;
  for (const BeamStep& step : steps) {
    std::vector<Sequence> next;
    for (size_t i = 0; i < step.tokens.size(); ++i) {
      next.push_back(sequences.empty() ? Sequence() : sequences.at(static_cast<size_t>(step.sources[i])));
      next.back().push_back(step.tokens[i]);
    }
    sequences = std::move(next);
  }
  return sequences;
}

BeamRecord compose_beams(const std::string& id, const nlohmann::json& searches) {
  const nlohmann::json &narrow = searches.at("f32"), &wide = searches.at("f64");
  BeamRecord record;
  for (size_t s = 0; s < narrow.at("steps").size(); ++s) {
    BeamStep step = step_of(narrow.at("steps").at(s));
    const nlohmann::json& other = wide.at("steps").at(s);
    if (step.sources != other.at("sources").get<Sequence>() || step.tokens != other.at("tokens").get<Sequence>())
      throw HarnessError(id, fmt::format("the beams of step {} differ between float32 and float64", s),
                         "choose another seed for this input");
    double floor = 0;
    for (size_t i = 0; i < step.log_probs.size(); ++i)
      floor = std::max(floor, std::abs(step.log_probs[i] - other.at("log_probs").at(i).get<double>()));
    step.floor = round_up(floor);
    record.steps.push_back(std::move(step));
  }
  record.sequences = narrow.at("sequences").get<std::vector<Sequence>>();
  record.scores = narrow.at("scores").get<std::vector<float>>();
  double floor = 0;
  for (size_t i = 0; i < record.scores.size(); ++i)
    floor = std::max(floor, std::abs(record.scores[i] - wide.at("scores").at(i).get<double>()));
  record.floor = round_up(floor);
  if (const std::string problem = beam_problem(record); !problem.empty())
    throw HarnessError(id, "the original's beam search: " + problem);
  return record;
}

std::vector<double> beam_bounds(const BeamRecord& record, const Rule& rule, double logits) {
  std::vector<double> bounds;
  for (size_t s = 0; s < record.steps.size(); ++s)
    bounds.push_back(std::max(rule.factor * record.steps[s].floor, 2 * logits * static_cast<double>(s + 1)));
  return bounds;
}

BeamJudgement judge_beams(const BeamRecord& record, const std::vector<BeamStep>& got, const std::vector<double>& bounds,
                          int64_t prompt) {
  if (got.size() != record.steps.size() || bounds.size() != record.steps.size())
    throw InputError("beams", fmt::format("{} steps and {} bounds, the golden has {} steps", got.size(), bounds.size(),
                                          record.steps.size()));
  BeamJudgement result;
  result.tally.probes = 1;
  const auto expected = kept_after_each(record.steps), found = kept_after_each(got);
  for (size_t s = 0; s < expected.size() && !result.tally.first; ++s) {
    const std::vector<float>& sums = record.steps[s].log_probs;
    const size_t width = record.steps[s].tokens.size();
    if (sums[width - 1] - sums[width] <= 2 * bounds[s]) {
      result.near_tie = static_cast<int64_t>(s);
      break;
    }
    ++result.judged;
    judge_step(expected[s], found[s], bounds[s], prompt + static_cast<int64_t>(s), result.tally);
  }
  if (result.tally.used > 0) result.tally.used_by = "beams";
  const auto steps = static_cast<int64_t>(record.steps.size());
  if (!result.tally.first && (result.judged == 0 || 2 * result.judged < steps))
    result.hollow = fmt::format("only {} of {} steps of the beam search could be judged; near-tie at step {}",
                                result.judged, steps, result.near_tie.value_or(-1));
  return result;
}

std::string beam_problem(const BeamRecord& record) {
  const size_t width = record.scores.size();
  if (record.steps.empty() || width < 2) return "fewer than two beams or no step";
  for (size_t s = 0; s < record.steps.size(); ++s) {
    const BeamStep& step = record.steps[s];
    if (step.sources.size() != width || step.tokens.size() != width || step.log_probs.size() != width + 1)
      return fmt::format("step {} is not of {} beams and one dropped candidate", s, width);
    for (const int64_t source : step.sources)
      if (source < 0 || source >= static_cast<int64_t>(width))
        return fmt::format("step {} continues beam {} of {}", s, source, width);
    if (!std::is_sorted(step.log_probs.rbegin(), step.log_probs.rend()))
      return fmt::format("the sums of step {} do not descend", s);
  }
  if (sequences_of(record.steps) != record.sequences) return "its sequences are not what its steps lead to";
  for (size_t i = 0; i < width; ++i) {
    const double score = record.steps.back().log_probs[i] / static_cast<double>(record.steps.size());
    if (!(std::abs(score - record.scores[i]) <= 1e-6 * std::abs(score)))
      return fmt::format("score {} is {}, its sum over the number of generated tokens {}", i, record.scores[i], score);
  }
  return "";
}

}  // namespace assay::golden
