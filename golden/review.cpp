#include "golden/review.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "golden/compare.hpp"

namespace assay::golden {
namespace {

// A right implementation stays within 8 floors (the runs' bound); 100 is no rounding any more.
constexpr double kNoiseFloors = 8, kDifferentFloors = 100;

// Adds up what differs between two goldens.
struct Differences {
  Change& change;
  bool any = false;

  void note(const std::string& text) {
    any = true;
    if (change.note.find(text) != std::string::npos) return;
    change.note += (change.note.empty() ? "" : "; ") + text;
  }

  void value(const std::string& probe, float before, float after, double unit) {
    if (before == after) return;
    any = true;
    const double difference = std::abs(double{before} - after);
    const double ulp = std::nextafter(std::abs(before), std::numeric_limits<float>::infinity()) - std::abs(before);
    const double floors = unit > 0 ? difference / unit : std::numeric_limits<double>::infinity();
    change.worst_ulps = std::max(change.worst_ulps, difference / ulp);
    if (floors > change.worst_floors || change.worst_probe.empty()) {
      change.worst_floors = floors;
      change.worst_probe = probe;
    }
  }

  // The first `positions` rows: after a changed token the others answer another question.
  void record(const std::string& where, const Record& before, const Record& after, int64_t positions) {
    if (before.shape != after.shape || before.sample != after.sample) return note("shapes or samples differ: " + where);
    // The unit is the run's own bound at factor 1, so that noise means the same here and there.
    const Bounds unit = bounds_of(before, Rule{.factor = 1});
    const int64_t columns = before.columns();
    for (int64_t p = 0; p < std::min({positions, before.positions, after.positions}); ++p) {
      for (int64_t c = 0; c < columns; ++c)
        value(where, before.values[p * columns + c], after.values[p * columns + c], unit.element[p]);
      value(where, before.norm[p], after.norm[p], unit.norm[p]);
    }
    if (before.floor != after.floor || before.norm_floor != after.norm_floor) note("floors differ");
  }

  // Other beams are another answer; sums are counted in the largest floor of a step.
  void beams(const BeamRecord& before, const BeamRecord& after) {
    if (before.sequences != after.sequences) {
      change.tokens_changed += 1;
      return note("beams differ");
    }
    // As with positions: the floor of one step can be near zero by luck.
    float unit = before.floor;
    for (const BeamStep& step : before.steps) unit = std::max(unit, step.floor);
    for (size_t s = 0; s < before.steps.size(); ++s)
      for (size_t i = 0; i < before.steps[s].log_probs.size(); ++i)
        value("beams", before.steps[s].log_probs[i], after.steps[s].log_probs[i], unit);
  }

  // The original's own errors are noise themselves: another processor sums 16-bit products otherwise.
  void errors(const std::vector<PrecisionError>& before, const std::vector<PrecisionError>& after) {
    for (size_t i = 0; i < std::min(before.size(), after.size()); ++i) {
      if (before[i].logits != after[i].logits) note("errors in " + before[i].compute + " differ");
      if (before[i].marked != after[i].marked) note("marked positions in " + before[i].compute + " differ");
    }
  }
};

bool is_equal(const std::optional<Quantization>& before, const std::optional<Quantization>& after) {
  if (!before || !after) return before.has_value() == after.has_value();
  const auto is_same_weight = [](const auto& a, const auto& b) {
    return a.first == b.first && a.second.codes == b.second.codes && a.second.absmax == b.second.absmax &&
           a.second.absmax_codes == b.second.absmax_codes && a.second.nested_absmax == b.second.nested_absmax &&
           a.second.offset == b.second.offset;
  };
  return before->unquantized == after->unquantized &&
         std::equal(before->weights.begin(), before->weights.end(), after->weights.begin(), after->weights.end(),
                    is_same_weight);
}

int64_t first_changed(const std::vector<int64_t>& before, const std::vector<int64_t>& after) {
  const auto [left, right] = std::mismatch(before.begin(), before.end(), after.begin(), after.end());
  return left - before.begin();
}

int64_t count_changed(const std::vector<int64_t>& before, const std::vector<int64_t>& after) {
  const size_t common = std::min(before.size(), after.size());
  auto changed = static_cast<int64_t>(std::max(before.size(), after.size()) - common);
  for (size_t i = 0; i < common; ++i) changed += before[i] != after[i];
  return changed;
}

std::vector<std::string> names(const std::vector<Record>& records) {
  std::vector<std::string> result;
  for (const Record& record : records) result.push_back(record.name);
  return result;
}

}  // namespace

std::string_view class_name(Class c) {
  switch (c) {
    case Class::kSame:
      return "same";
    case Class::kNoise:
      return "noise";
    case Class::kDrift:
      return "drift";
    case Class::kDifferent:
      return "different answer";
    case Class::kNew:
      return "new";
  }
  return "unknown";
}

Change classify(const Golden& committed, const Golden& candidate) {
  Change change{.id = candidate.id()};
  Differences differences{change};
  bool is_comparable = true;
  const auto structure = [&](const std::string& text) {
    is_comparable = false;
    differences.note(text);
  };
  if (committed.config_digest != candidate.config_digest) structure("config digest differs");
  if (committed.weight_digests != candidate.weight_digests) structure("weight digests differ");
  if (committed.float32_weights != candidate.float32_weights) structure("weights kept in float32 differ");
  if (!is_equal(committed.quantization, candidate.quantization)) structure("quantised weights differ");
  differences.errors(committed.errors, candidate.errors);
  if (committed.original != candidate.original) differences.note("original differs");
  if (committed.prompt != candidate.prompt) structure("prompt differs");
  if (names(committed.probes) != names(candidate.probes)) structure("probe set differs");

  change.tokens_changed = count_changed(committed.tokens, candidate.tokens);
  const int64_t judged = first_changed(committed.tokens, candidate.tokens);
  for (const Record& before : committed.probes)
    if (const Record* after = candidate.probe(before.name)) differences.record(before.name, before, *after, judged);
  for (size_t p = 0; p < std::min(committed.gap.size(), candidate.gap.size()); ++p)
    differences.any |= committed.gap[p] != candidate.gap[p];

  if (committed.beams.has_value() != candidate.beams.has_value())
    structure("beam search differs");
  else if (committed.beams)
    differences.beams(*committed.beams, *candidate.beams);

  std::vector<int64_t> cuts[2];
  for (const StateRecord& states : committed.states) cuts[0].push_back(states.cut);
  for (const StateRecord& states : candidate.states) cuts[1].push_back(states.cut);
  if (cuts[0] != cuts[1]) structure("state cuts differ");
  for (const StateRecord& states : committed.states) {
    const StateRecord* others = candidate.states_at(states.cut);
    if (!others || states.cut > judged) continue;
    if (names(states.states) != names(others->states)) {
      structure("probe set differs");
      continue;
    }
    for (size_t i = 0; i < states.states.size(); ++i)
      differences.record(states.states[i].name + " after " + std::to_string(states.cut), states.states[i],
                         others->states[i], states.states[i].positions);
  }

  if (change.note.find("shapes or samples differ") != std::string::npos) is_comparable = false;
  if (change.tokens_changed > 0 || change.worst_floors > kDifferentFloors)
    change.kind = Class::kDifferent;
  else if (change.worst_floors > kNoiseFloors || !is_comparable)
    change.kind = Class::kDrift;
  else
    change.kind = differences.any ? Class::kNoise : Class::kSame;
  return change;
}

}  // namespace assay::golden
