#include "golden/compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "cases/spec/error.hpp"
#include "golden/comparison.hpp"

namespace assay::golden {
namespace {

constexpr double kEpsilon = std::numeric_limits<float>::epsilon();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

double median(std::vector<float> values) {
  if (values.empty()) return 0;
  const size_t middle = values.size() / 2;
  std::nth_element(values.begin(), values.begin() + middle, values.end());
  const double upper = values[middle];
  if (values.size() % 2) return upper;
  return (upper + *std::max_element(values.begin(), values.begin() + middle)) / 2;
}

// No less than the median, which two values have between them.
double upper_quartile(std::vector<float> values) {
  if (values.empty()) return 0;
  const auto at = values.begin() + static_cast<ptrdiff_t>(3 * (values.size() - 1) / 4);
  std::nth_element(values.begin(), at, values.end());
  return std::max(double{*at}, median(values));
}

double largest(std::vector<float> values) {
  return values.empty() ? 0 : double{*std::max_element(values.begin(), values.end())};
}

void require(bool holds, const Record& record, const char* what) {
  if (!holds) throw InputError(record.name, what);
}

void require_bounds(const Record& record, const Bounds& bounds) {
  const auto positions = static_cast<size_t>(record.positions);
  require(bounds.element.size() == positions && bounds.norm.size() == positions, record,
          "the bounds are not those of this record");
}

// Where a record is compared with numbers, it must hold all that it says.
void require_numbers(const Record& record) {
  const auto positions = static_cast<size_t>(record.positions);
  require(record.norm.size() == positions && record.values.size() == positions * record.columns(), record,
          "the record's values or norms do not fit its positions");
}

Tally wrong_shape(const Record& record, std::string expected, const HostTensor& got) {
  Tally tally{.probes = 1, .used = kInfinity, .used_by = record.name};
  tally.first.emplace();
  tally.first->probe = record.name;
  tally.first->layer = layer_of(record.name);
  tally.first->what = "shape";
  tally.first->detail =
      fmt::format("expected {} float32, got {} {}", expected, to_string(got.shape()), dtype_name(got.dtype()));
  return tally;
}

std::string shape_text(const std::string& leading, const Shape& row) {
  std::string text = "[" + leading;
  for (int64_t size : row) text += ", " + std::to_string(size);
  return text + "]";
}

// A tally with the finding if the tensor cannot hold these columns of this row.
std::optional<Tally> check_sequence(const Record& record, const HostTensor& got, int64_t row, int64_t column,
                                    int64_t count) {
  require(row >= 0 && column >= 0, record, "a row or column below zero");
  const Shape& shape = got.shape();
  if (got.dtype() == DType::kF32 && shape.size() == record.shape.size() + 2 && shape[0] > row &&
      shape[1] >= column + count && std::equal(record.shape.begin(), record.shape.end(), shape.begin() + 2))
    return std::nullopt;
  return wrong_shape(record, shape_text(fmt::format("B > {}, L >= {}", row, column + count), record.shape), got);
}

std::optional<Tally> check_state(const Record& record, const HostTensor& got, int64_t row) {
  require(row >= 0, record, "a row below zero");
  // The heads are a dimension of their own, or there is one row and no dimension for it.
  Shape whole = record.shape;
  if (record.positions > 1) whole.insert(whole.begin(), record.positions);
  const Shape& shape = got.shape();
  if (got.dtype() == DType::kF32 && shape.size() == whole.size() + 1 && shape[0] > row &&
      std::equal(whole.begin(), whole.end(), shape.begin() + 1))
    return std::nullopt;
  return wrong_shape(record, shape_text(fmt::format("B > {}", row), whole), got);
}

void require_range(const Record& record, int64_t position, int64_t count) {
  if (position < 0 || count < 0 || count > record.positions || position > record.positions - count)
    throw InputError(record.name, fmt::format("positions {} to {} of a record of {}", position, position + count - 1,
                                              record.positions));
}

std::span<const float> columns_of(const HostTensor& tensor, int64_t row, int64_t column, int64_t width) {
  return tensor.values<float>().subspan(static_cast<size_t>((row * tensor.shape()[1] + column) * width));
}

std::optional<Tally> check_growing(const Record& record, const GrowingRow& got, int64_t count) {
  require(got.row >= 0 && got.pad >= 0 && got.pad + count <= got.columns && record.shape.size() == 2, record,
          "is not a column [heads, width], or not of these columns");
  const Shape &shape = got.tensor.shape(), &column = record.shape;
  if (got.tensor.dtype() == DType::kF32 && shape.size() == 4 && shape[0] > got.row && shape[1] == column[0] &&
      shape[2] == got.columns && shape[3] == column[1])
    return std::nullopt;
  return wrong_shape(record, fmt::format("[B > {}, {}, {}, {}]", got.row, column[0], got.columns, column[1]),
                     got.tensor);
}

// One token's column, heads together: [heads, width].
std::vector<float> column_of(const GrowingRow& state, int64_t position) {
  const Shape& shape = state.tensor.shape();
  const std::span<const float> values = state.tensor.values<float>();
  std::vector<float> column;
  for (int64_t head = 0; head < shape[1]; ++head) {
    const int64_t begin = ((state.row * shape[1] + head) * shape[2] + state.pad + position) * shape[3];
    column.insert(column.end(), values.begin() + begin, values.begin() + begin + shape[3]);
  }
  return column;
}

std::span<const float> state_of(const HostTensor& tensor, int64_t row) {
  const int64_t size = tensor.count() / tensor.shape()[0];
  return tensor.values<float>().subspan(static_cast<size_t>(row * size), static_cast<size_t>(size));
}

}  // namespace

void Tally::merge(const Tally& later) {
  probes += later.probes;
  elements += later.elements;
  if (later.used > used || used_by.empty()) {
    used = std::max(used, later.used);
    used_by = later.used_by;
  }
  if (!first) first = later.first;
}

Rule at_width(Rule rule, int64_t width) {
  rule.ulps *= std::max(1.0, std::sqrt(static_cast<double>(width) / 256));
  return rule;
}

Bounds bounds_of(const Record& record, const Rule& rule, int64_t steps) {
  const auto positions = static_cast<size_t>(record.positions);
  require(record.floor.size() == positions && record.norm_floor.size() == positions && record.norm.size() == positions,
          record, "floors and norms must be one a position");
  const auto is_floor = [](float floor) { return std::isfinite(floor) && floor >= 0; };
  require(std::all_of(record.floor.begin(), record.floor.end(), is_floor) &&
              std::all_of(record.norm_floor.begin(), record.norm_floor.end(), is_floor) && is_floor(record.scale),
          record, "floors and scale must be finite and not negative");
  const bool has_few = element_count(record.shape) <= rule.few;
  const auto typical = steps > 0 ? median : has_few ? largest : upper_quartile;
  const double middle = typical(record.floor), norm_middle = typical(record.norm_floor);
  const double ulps = rule.ulps * kEpsilon * std::max(1.0, std::sqrt(static_cast<double>(steps) / 16));
  Bounds bounds;
  for (size_t p = 0; p < positions; ++p) {
    const double floor = record.floor[p], norm_floor = record.norm_floor[p];
    const double norm = std::isfinite(record.norm[p]) ? record.norm[p] : 0;
    bounds.element.push_back(rule.factor * std::max({floor, middle, ulps * record.scale}));
    bounds.norm.push_back(rule.factor * std::max({norm_floor, norm_middle, floor, ulps * norm}));
  }
  return bounds;
}

Tally compare_sequence(const Record& record, const Bounds& bounds, const HostTensor& got, int64_t row, int64_t column,
                       int64_t position, int64_t count) {
  require_bounds(record, bounds);
  require_numbers(record);
  require_range(record, position, count);
  if (auto wrong = check_sequence(record, got, row, column, count)) return *wrong;
  if (count == 0) return {};
  const auto width = static_cast<size_t>(element_count(record.shape));
  const std::span<const float> values = columns_of(got, row, column, static_cast<int64_t>(width));
  Comparison comparison(record, bounds, /*is_state=*/false);
  for (int64_t i = 0; i < count; ++i) comparison.golden_row(position + i, values.subspan(i * width, width));
  return comparison.tally(count);
}

Tally compare_state(const Record& record, const Bounds& bounds, const HostTensor& got, int64_t row) {
  require_bounds(record, bounds);
  require_numbers(record);
  if (auto wrong = check_state(record, got, row)) return *wrong;
  const auto width = static_cast<size_t>(element_count(record.shape));
  const std::span<const float> values = state_of(got, row);
  Comparison comparison(record, bounds, /*is_state=*/true);
  for (int64_t p = 0; p < record.positions; ++p) comparison.golden_row(p, values.subspan(p * width, width));
  return comparison.tally(record.positions);
}

Tally compare_legs(const Record& record, const Bounds& bounds, const HostTensor& expected, int64_t expected_row,
                   int64_t expected_column, const HostTensor& got, int64_t row, int64_t column, int64_t position,
                   int64_t count) {
  require_bounds(record, bounds);
  require_range(record, position, count);
  if (auto wrong = check_sequence(record, expected, expected_row, expected_column, count)) return *wrong;
  if (auto wrong = check_sequence(record, got, row, column, count)) return *wrong;
  if (count == 0) return {};
  const auto width = static_cast<size_t>(element_count(record.shape));
  const auto left = columns_of(expected, expected_row, expected_column, static_cast<int64_t>(width));
  const auto right = columns_of(got, row, column, static_cast<int64_t>(width));
  Comparison comparison(record, bounds, /*is_state=*/false);
  for (int64_t i = 0; i < count; ++i)
    comparison.leg_row(position + i, left.subspan(i * width, width), right.subspan(i * width, width));
  return comparison.tally(count);
}

Tally compare_growing(const Record& record, const Bounds& bounds, const GrowingRow& got, int64_t count) {
  require_bounds(record, bounds);
  require_numbers(record);
  require_range(record, 0, count);
  if (auto wrong = check_growing(record, got, count)) return *wrong;
  if (count == 0) return {};
  Comparison comparison(record, bounds, /*is_state=*/false);
  for (int64_t t = 0; t < count; ++t) comparison.golden_row(t, column_of(got, t));
  return comparison.tally(count);
}

Tally compare_leg_growing(const Record& record, const Bounds& bounds, const GrowingRow& expected, const GrowingRow& got,
                          int64_t count) {
  require_bounds(record, bounds);
  require_range(record, 0, count);
  if (auto wrong = check_growing(record, expected, count)) return *wrong;
  if (auto wrong = check_growing(record, got, count)) return *wrong;
  if (count == 0) return {};
  Comparison comparison(record, bounds, /*is_state=*/false);
  for (int64_t t = 0; t < count; ++t) comparison.leg_row(t, column_of(expected, t), column_of(got, t));
  return comparison.tally(count);
}

Tally compare_leg_states(const Record& record, const Bounds& bounds, const HostTensor& expected, int64_t expected_row,
                         const HostTensor& got, int64_t row) {
  require_bounds(record, bounds);
  if (auto wrong = check_state(record, expected, expected_row)) return *wrong;
  if (auto wrong = check_state(record, got, row)) return *wrong;
  const auto width = static_cast<size_t>(element_count(record.shape));
  const auto left = state_of(expected, expected_row), right = state_of(got, row);
  Comparison comparison(record, bounds, /*is_state=*/true);
  for (int64_t p = 0; p < record.positions; ++p)
    comparison.leg_row(p, left.subspan(p * width, width), right.subspan(p * width, width));
  return comparison.tally(record.positions);
}

}  // namespace assay::golden
