#include "golden/comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

namespace assay::golden {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Equal where neither is finite: NaN with NaN, an infinity with its like.
bool alike(float expected, float got) {
  const bool is_finite = std::isfinite(expected);
  if (is_finite != std::isfinite(got)) return false;
  return is_finite || expected == got || (std::isnan(expected) && std::isnan(got));
}

// Eight running sums, so that the compiler may vectorise. Not finite exactly if some element is not.
double sum_of_squares(std::span<const float> row) {
  double sums[8] = {};
  const size_t whole = row.size() & ~size_t{7};
  for (size_t i = 0; i < whole; i += 8)
    for (size_t k = 0; k < 8; ++k) sums[k] += double{row[i + k]} * row[i + k];
  double total = 0;
  for (size_t i = whole; i < row.size(); ++i) total += double{row[i]} * row[i];
  for (double sum : sums) total += sum;
  return total;
}

double largest_difference(std::span<const float> a, std::span<const float> b) {
  double largest[8] = {};
  const auto take = [&](size_t i, double& lane) {
    const double difference = std::abs(double{a[i]} - b[i]);
    lane = difference > lane ? difference : lane;
  };
  const size_t whole = a.size() & ~size_t{7};
  for (size_t i = 0; i < whole; i += 8)
    for (size_t k = 0; k < 8; ++k) take(i + k, largest[k]);
  for (size_t i = whole; i < a.size(); ++i) take(i, largest[0]);
  return *std::max_element(largest, largest + 8);
}

}  // namespace

int64_t layer_of(std::string_view probe) {
  constexpr std::string_view prefix = "layers.";
  int64_t layer = -1;
  if (probe.starts_with(prefix)) std::from_chars(probe.data() + prefix.size(), probe.data() + probe.size(), layer);
  return layer;
}

Comparison::Comparison(const Record& record, const Bounds& bounds, bool is_state)
    : record_(record), bounds_(bounds), is_state_(is_state), width_(element_count(record.shape)) {}

bool Comparison::Count::is_out(double difference, double bound) {
  ++of;
  // A division an element would cost more than all the rest. A bound of zero allows only equality.
  if (difference > used * bound) used = bound > 0 ? difference / bound : kInfinity;
  if (difference <= bound) return false;
  ++bad;
  return true;
}

void Comparison::golden_row(int64_t p, std::span<const float> got) {
  const float* kept = record_.values.data() + p * record_.columns();
  const double norm = std::sqrt(sum_of_squares(got));
  const bool is_finite = std::isfinite(norm) && std::isfinite(record_.norm[p]);
  // Where both sides are not finite in the same places, what is finite is still compared.
  if (!is_finite && find_not_finite(p, got, kept, static_cast<float>(norm))) return;
  const double bound = bounds_.element[p];
  for (int64_t i = 0; i < record_.columns(); ++i) {
    const int64_t flat = record_.sample.empty() ? i : record_.sample[i];
    compare_value(p, flat, kept[i], got[flat], bound);
  }
  if (is_finite && norms_.is_out(std::abs(norm - record_.norm[p]), bounds_.norm[p]) && !out_of_bounds_)
    out_of_bounds_ = finding("norm", p, -1, record_.norm[p], norm, bounds_.norm[p]);
}

void Comparison::leg_row(int64_t p, std::span<const float> expected, std::span<const float> got) {
  const double bound = bounds_.element[p];
  // Legs mostly agree, and then a row is looked at as a whole.
  if (std::isfinite(sum_of_squares(expected)) && std::isfinite(sum_of_squares(got))) {
    if (const double largest = largest_difference(expected, got); largest <= bound) {
      values_.is_out(largest, bound);
      values_.of += width_ - 1;
      return;
    }
  }
  for (int64_t i = 0; i < width_; ++i) {
    if (alike(expected[i], got[i]))
      compare_value(p, i, expected[i], got[i], bound);
    else
      note_not_finite(p, i, expected[i], got[i]);
  }
}

Tally Comparison::tally(int64_t rows) const {
  Tally tally{.probes = 1, .elements = values_.of, .used = std::max(values_.used, norms_.used)};
  if (not_finite_) {
    tally.first = not_finite_;
    tally.first->bad = bad_not_finite_;
    tally.first->of = rows * width_;
    tally.used = kInfinity;
  } else if (out_of_bounds_) {
    const Count& count = out_of_bounds_->what == "norm" ? norms_ : values_;
    tally.first = out_of_bounds_;
    tally.first->bad = count.bad;
    tally.first->of = count.of;
  }
  if (tally.used > 0) tally.used_by = record_.name;
  return tally;
}

void Comparison::compare_value(int64_t p, int64_t flat, float expected, float got, double bound) {
  const double difference = expected == got || !std::isfinite(expected) ? 0 : std::abs(double{got} - expected);
  if (values_.is_out(difference, bound) && !out_of_bounds_)
    out_of_bounds_ = finding("value", p, flat, expected, got, bound);
}

// Looks through the whole row. Where the golden's row is finite all of it must be; where it is not, the kept elements
// say which may be, and the norm speaks for the rest.
bool Comparison::find_not_finite(int64_t p, std::span<const float> got, const float* kept, float norm) {
  const int64_t before = bad_not_finite_;
  const bool all_finite = std::isfinite(record_.norm[p]);
  int64_t next = 0;  // of the kept elements
  for (int64_t flat = 0; flat < width_; ++flat) {
    const bool is_kept = record_.sample.empty() || (next < record_.columns() && record_.sample[next] == flat);
    const float expected = is_kept ? kept[next] : std::numeric_limits<float>::quiet_NaN();
    next += is_kept;
    if (is_kept ? alike(expected, got[flat]) : !all_finite || std::isfinite(got[flat])) continue;
    note_not_finite(p, flat, expected, got[flat]);
    if (!is_kept && bad_not_finite_ == 1)
      not_finite_->detail = "expected a finite value, which is outside the golden's sample";
  }
  if (bad_not_finite_ == before && !alike(record_.norm[p], norm)) note_not_finite(p, -1, record_.norm[p], norm);
  return bad_not_finite_ != before;
}

void Comparison::note_not_finite(int64_t p, int64_t flat, float expected, float got) {
  ++bad_not_finite_;
  if (!not_finite_) not_finite_ = finding("not finite", p, flat, expected, got, bounds_.element[p]);
}

// flat: -1 for the row's norm.
Finding Comparison::finding(const char* what, int64_t p, int64_t flat, double expected, double got,
                            double bound) const {
  Finding result{.probe = record_.name, .layer = layer_of(record_.name)};
  const bool has_heads = is_state_ && record_.positions > 1;
  if (!is_state_) result.position = p;
  if (flat >= 0) {
    result.index = coordinates(flat, record_.shape);
    if (has_heads) result.index.insert(result.index.begin(), p);
  } else if (has_heads) {
    result.detail = fmt::format("head {}", p);
  }
  result.expected = expected;
  result.got = got;
  result.bound = bound;
  result.what = what;
  return result;
}

}  // namespace assay::golden
