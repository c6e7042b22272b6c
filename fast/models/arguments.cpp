#include "fast/models/arguments.hpp"

#include <algorithm>
#include <string>

#include "cases/spec/error.hpp"

namespace assay::fast {

namespace {
std::string place(const char* name, int64_t row, int64_t column) {
  return std::string(name) + "[" + std::to_string(row) + ", " + std::to_string(column) + "]";
}
}  // namespace

void check_session_options(const SessionOptions& options) {
  if (options.rows < 1)
    throw InputError("session", "rows = " + std::to_string(options.rows) + ", at least 1 is needed");
  const bool is_static = options.cache == CacheKind::kStatic;
  if (is_static && options.limit < 1)
    throw InputError("session", "limit = " + std::to_string(options.limit) + ", a static cache needs at least 1");
}

int64_t check_call(const Call& call, int64_t rows, int64_t past, int64_t vocabulary, int64_t limit) {
  const Shape& shape = call.tokens.shape();
  if (call.tokens.dtype() != DType::kI64)
    throw InputError("tokens", "dtype " + std::string(dtype_name(call.tokens.dtype())) + ", expected int64");
  if (shape.size() != 2 || shape[0] != rows || shape[1] < 1)
    throw InputError("tokens",
                     "shape " + to_string(shape) + ", expected [" + std::to_string(rows) + ", L] with L >= 1");
  const int64_t columns = shape[1];
  if (limit > 0 && columns > limit - past)
    throw InputError("tokens", std::to_string(past) + " columns in the cache and " + std::to_string(columns) +
                                   " more exceed its limit of " + std::to_string(limit));
  const auto tokens = call.tokens.values<int64_t>();
  for (size_t i = 0; i < tokens.size(); ++i)
    if (tokens[i] < 0 || tokens[i] >= vocabulary) {
      const auto flat = static_cast<int64_t>(i);
      throw InputError(place("tokens", flat / columns, flat % columns),
                       std::to_string(tokens[i]) + " is outside [0, " + std::to_string(vocabulary) + ")");
    }
  if (call.mask.absent()) return columns;

  const int64_t width = past + columns;
  if (call.mask.dtype() != DType::kU8)
    throw InputError("mask", "dtype " + std::string(dtype_name(call.mask.dtype())) + ", expected uint8");
  if (call.mask.shape() != Shape{rows, width})
    throw InputError("mask", "shape " + to_string(call.mask.shape()) + ", expected " + to_string({rows, width}));
  const auto mask = call.mask.values<uint8_t>();
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < width; ++column) {
      const auto i = static_cast<size_t>(row * width + column);
      if (mask[i] > 1) throw InputError(place("mask", row, column), std::to_string(mask[i]) + " is neither 0 nor 1");
      if (column > 0 && mask[i] < mask[i - 1])
        throw InputError(place("mask", row, column), "0 behind a 1; only left padding is supported");
    }
  return columns;
}

std::vector<int64_t> padding_of(const Call& call, int64_t rows) {
  std::vector<int64_t> padding(static_cast<size_t>(rows), 0);
  if (call.mask.absent()) return padding;
  const auto mask = call.mask.values<uint8_t>();
  const int64_t width = call.mask.shape()[1];
  for (int64_t row = 0; row < rows; ++row) {
    const auto begin = mask.begin() + row * width;
    padding[static_cast<size_t>(row)] = std::count(begin, begin + width, uint8_t{0});
  }
  return padding;
}

std::vector<uint8_t> mask_of(const std::vector<int64_t>& padding, int64_t first, int64_t columns) {
  std::vector<uint8_t> mask;
  mask.reserve(padding.size() * static_cast<size_t>(columns));
  for (int64_t pad : padding)
    for (int64_t column = first; column < first + columns; ++column) mask.push_back(column >= pad ? 1 : 0);
  return mask;
}

std::vector<int64_t> positions_of(const std::vector<int64_t>& padding, int64_t first, int64_t columns) {
  std::vector<int64_t> positions;
  positions.reserve(padding.size() * static_cast<size_t>(columns));
  for (int64_t pad : padding)
    for (int64_t column = first; column < first + columns; ++column)
      positions.push_back(std::max(column - pad, int64_t{0}));
  return positions;
}

void check_reorder(const std::vector<int64_t>& source, int64_t rows) {
  if (static_cast<int64_t>(source.size()) != rows)
    throw InputError("reorder", std::to_string(source.size()) + " sources for " + std::to_string(rows) + " rows");
  for (size_t row = 0; row < source.size(); ++row)
    if (source[row] < 0 || source[row] >= rows)
      throw InputError("reorder", "row " + std::to_string(row) + " would become row " + std::to_string(source[row]) +
                                      " of " + std::to_string(rows));
}

}  // namespace assay::fast
