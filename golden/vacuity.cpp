#include "golden/vacuity.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace assay::golden {
namespace {

bool is_zero(float value) { return value == 0; }

// Every row equals the first one.
bool is_constant(const Record& record) {
  const auto columns = record.columns();
  const auto first = record.values.begin();
  for (int64_t p = 1; p < record.positions; ++p)
    if (record.norm[p] != record.norm[0] || !std::equal(first, first + columns, first + p * columns)) return false;
  return true;
}

std::string vacuity_of(const Record& record, bool is_varied) {
  const auto finite = [](float value) { return std::isfinite(value); };
  if (!std::all_of(record.values.begin(), record.values.end(), finite) ||
      !std::all_of(record.norm.begin(), record.norm.end(), finite))
    return fmt::format("{} holds values that are not finite", record.name);
  if (std::all_of(record.norm.begin(), record.norm.end(), is_zero))
    return fmt::format("{} is zero throughout", record.name);
  const int64_t zeros = std::count_if(record.values.begin(), record.values.end(), is_zero);
  const auto count = static_cast<int64_t>(record.values.size());
  if (2 * zeros > count && !record.is_sparse)
    return fmt::format("{} of {} recorded values of {} are exactly 0", zeros, count, record.name);
  if (is_varied && is_constant(record))
    return fmt::format("{} is the same at all {} positions, though the tokens differ", record.name, record.positions);
  return "";
}

}  // namespace

std::string vacuity(const Golden& golden) {
  const auto other = [&golden](int64_t token) { return token != golden.tokens.front(); };
  const bool is_varied = std::any_of(golden.tokens.begin(), golden.tokens.end(), other);
  for (const Record& record : golden.probes)
    if (const std::string reason = vacuity_of(record, is_varied); !reason.empty()) return reason;
  return "";
}

}  // namespace assay::golden
