#include "golden/low_precision.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "cases/spec/error.hpp"
#include "golden/comparison.hpp"

namespace assay::golden {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double norm_of(std::span<const float> row) {
  double sum = 0;
  for (const float value : row) sum += static_cast<double>(value) * value;
  return std::sqrt(sum);
}

// Rank ceil(q n) of n, ascending.
double quantile(std::vector<double> values, double q) {
  const auto n = static_cast<double>(values.size());
  const auto rank = static_cast<ptrdiff_t>(std::ceil(q * n - 1e-9)) - 1;
  std::nth_element(values.begin(), values.begin() + rank, values.end());
  return values[static_cast<size_t>(rank)];
}

// The bounds that turn compare_sequence and compare_legs into a look at shapes and NaN/Inf only.
Tally check_shape_and_finite(const Record& logits, const LogitColumns& got, int64_t position, int64_t count) {
  const std::vector<double> any(static_cast<size_t>(logits.positions), kInfinity);
  Tally tally = compare_sequence(logits, {any, any}, got.tensor, got.row, got.column, position, count);
  if (!tally.first) tally.used = 0;
  tally.used_by = "logits";
  return tally;
}

std::span<const float> row_of(const LogitColumns& from, int64_t i) {
  const int64_t width = from.tensor.shape()[2];
  const int64_t begin = (from.row * from.tensor.shape()[1] + from.column + i) * width;
  return from.tensor.values<float>().subspan(static_cast<size_t>(begin), static_cast<size_t>(width));
}

void look_at(LogitError& error, int64_t index, double expected, double got) {
  if (const double difference = std::abs(got - expected); error.index < 0 || difference > error.error)
    error = {.error = difference, .index = index, .expected = expected, .got = got};
}

void set_norms(LogitError& error, double expected, double got) {
  error.norm_expected = expected;
  error.norm_got = got;
  error.norm_error = std::abs(got - expected);
}

struct Gate {
  std::string what;
  double q;  // quantile; 1: the largest
  bool is_of_norms = false;
};

class RowGates {
 public:
  RowGates(const Record& logits, const PrecisionError& original, std::span<const LogitError> row,
           const LowPrecisionRule& rule, double factor)
      : logits_(logits),
        original_(original),
        row_(row),
        bounds_(bounds_of(logits, Rule{})),
        rule_(rule),
        factor_(factor) {}

  void apply(const Gate& gate, const std::vector<int64_t>& positions, Tally& tally) const {
    std::vector<double> f, p;
    double floor = 0;
    for (const int64_t at : positions) {
      const auto i = static_cast<size_t>(at);
      f.push_back(gate.is_of_norms ? row_[i].norm_error : row_[i].error);
      p.push_back(original_.logits[i]);
      floor = std::max(floor, bounds_.element[i]);
    }
    const double got = quantile(f, gate.q), own = quantile(p, gate.q);
    double allowed = factor_ * ((gate.q == 1 ? rule_.largest_k : rule_.k) * own + floor);
    if (gate.is_of_norms) allowed *= std::sqrt(static_cast<double>(element_count(logits_.shape)));

    Tally found{.used = allowed > 0 ? got / allowed : (got > 0 ? kInfinity : 0)};
    found.used_by = fmt::format("logits ({})", gate.what);
    if (got > allowed) found.first = finding(gate, positions, f, got, own, allowed);
    tally.merge(found);
  }

 private:
  Finding finding(const Gate& gate, const std::vector<int64_t>& positions, const std::vector<double>& f, double got,
                  double own, double allowed) const {
    Finding finding{.probe = logits_.name, .layer = layer_of(logits_.name), .bound = allowed, .what = gate.what};
    finding.of = static_cast<int64_t>(f.size());
    finding.bad = std::count_if(f.begin(), f.end(), [allowed](double error) { return error > allowed; });
    const size_t first = static_cast<size_t>(
        std::find_if(f.begin(), f.end(), [allowed](double error) { return error > allowed; }) - f.begin());
    const LogitError& at = row_[static_cast<size_t>(positions[first])];
    finding.position = positions[first];
    finding.step = at.step;
    finding.expected = gate.is_of_norms ? at.norm_expected : at.expected;
    finding.got = gate.is_of_norms ? at.norm_got : at.got;
    if (!gate.is_of_norms) finding.index = {at.index};
    const auto worst = std::max_element(f.begin(), f.end()) - f.begin();
    finding.detail = fmt::format(
        "{} of {} positions {:.2g}, the original's own {:.2g}, allowed {:.2g}; worst {:.2g} at position {}", gate.what,
        finding.of, got, own, allowed, f[static_cast<size_t>(worst)], positions[static_cast<size_t>(worst)]);
    return finding;
  }

  const Record& logits_;
  const PrecisionError& original_;
  std::span<const LogitError> row_;
  Bounds bounds_;
  const LowPrecisionRule& rule_;
  double factor_;
};

std::string marked_note(const PrecisionError& original, std::span<const LogitError> row, int64_t marked) {
  double largest = 0, own = 0;
  for (size_t i = static_cast<size_t>(marked); i < row.size(); ++i) {
    largest = std::max(largest, row[i].error);
    own = std::max(own, static_cast<double>(original.logits[i]));
  }
  return fmt::format(
      "near-tie of a router at position {}: {} of {} positions shown, not judged: largest error {:.3g}, the original's "
      "own {:.3g}",
      marked, static_cast<int64_t>(row.size()) - marked, row.size(), largest, own);
}

}  // namespace

Tally measure_logits(const Record& logits, const LogitColumns& got, int64_t position, int64_t count,
                     std::vector<LogitError>& into) {
  Tally tally = check_shape_and_finite(logits, got, position, count);
  if (tally.first) return tally;
  const int64_t kept = logits.columns();
  for (int64_t i = 0; i < count; ++i) {
    const std::span<const float> row = row_of(got, i);
    const auto recorded = static_cast<size_t>((position + i) * kept);
    LogitError error;
    for (int64_t j = 0; j < kept; ++j) {
      const int64_t index = logits.sample.empty() ? j : logits.sample[static_cast<size_t>(j)];
      look_at(error, index, logits.values[recorded + static_cast<size_t>(j)], row[static_cast<size_t>(index)]);
    }
    set_norms(error, logits.norm[static_cast<size_t>(position + i)], norm_of(row));
    into.push_back(error);
  }
  return tally;
}

Tally measure_leg_logits(const Record& logits, const LogitColumns& expected, const LogitColumns& got, int64_t position,
                         int64_t count, std::vector<LogitError>& into) {
  for (const LogitColumns* side : {&expected, &got})
    if (Tally tally = check_shape_and_finite(logits, *side, position, count); tally.first) return tally;
  for (int64_t i = 0; i < count; ++i) {
    const std::span<const float> left = row_of(expected, i), right = row_of(got, i);
    LogitError error;
    for (size_t j = 0; j < left.size(); ++j) look_at(error, static_cast<int64_t>(j), left[j], right[j]);
    set_norms(error, norm_of(left), norm_of(right));
    into.push_back(error);
  }
  return {.probes = 1, .elements = count * element_count(logits.shape), .used_by = "logits"};
}

int64_t first_marked(const PrecisionError& original, int64_t positions) {
  const auto& marked = original.marked;
  return marked.empty() ? positions : std::min(positions, *std::min_element(marked.begin(), marked.end()));
}

LowPrecisionJudgement judge_low_precision(const Record& logits, const PrecisionError& original,
                                          std::span<const LogitError> row, const LowPrecisionRule& rule,
                                          double factor) {
  const auto count = static_cast<int64_t>(row.size());
  if (static_cast<int64_t>(original.logits.size()) != logits.positions || count > logits.positions)
    throw InputError(logits.name, fmt::format("{} errors of the original in {}, {} positions recorded, {} judged",
                                              original.logits.size(), original.compute, logits.positions, count));
  LowPrecisionJudgement judgement;
  judgement.tally.used_by = "logits";
  const int64_t marked = first_marked(original, count);
  if (marked < count) judgement.notes.push_back(marked_note(original, row, marked));

  std::vector<int64_t> all, steps;
  for (int64_t at = 0; at < marked; ++at) {
    all.push_back(at);
    if (row[static_cast<size_t>(at)].is_cached_step) steps.push_back(at);
  }
  const double share = count == 0 ? 0 : static_cast<double>(count - marked) / static_cast<double>(count);
  if (share > rule.most_marked) {
    judgement.hollow = fmt::format("{} of {} positions follow a near-tie of a router", count - marked, count);
    return judgement;
  }
  if (marked < rule.least_positions) {
    judgement.hollow = fmt::format("{} positions left to judge, {} are the least", marked, rule.least_positions);
    return judgement;
  }

  const RowGates gates(logits, original, row, rule, factor);
  const auto apply = [&](const std::vector<int64_t>& positions, const std::string& suffix) {
    gates.apply({"median" + suffix, 0.5}, positions, judgement.tally);
    if (static_cast<int64_t>(positions.size()) >= rule.least_for_p90)
      gates.apply({"p90" + suffix, 0.9}, positions, judgement.tally);
    gates.apply({"largest" + suffix, 1}, positions, judgement.tally);
  };
  apply(all, "");
  gates.apply({"norm", 1, true}, all, judgement.tally);
  if (static_cast<int64_t>(steps.size()) >= rule.least_positions)
    apply(steps, " of steps");
  else if (!steps.empty())
    judgement.notes.push_back(fmt::format("{} cached steps, too few to be judged by themselves", steps.size()));
  return judgement;
}

}  // namespace assay::golden
