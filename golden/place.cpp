#include "golden/place.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "cases/spec/error.hpp"

namespace assay::golden {

using Json = nlohmann::json;

Place Place::below(std::string_view step) const { return {file, fmt::format("{}/{}", pointer, step)}; }
Place Place::below(size_t index) const { return {file, fmt::format("{}/{}", pointer, index)}; }
void Place::refuse(std::string what, std::string advice) const {
  throw InputError(file.string() + " " + (pointer.empty() ? "/" : pointer), std::move(what), std::move(advice));
}

float number_of(const Json& value, const Place& place) {
  if (!value.is_number()) {
    const auto& text = value.get_ref<const std::string&>();
    if (text == "NaN") return std::numeric_limits<float>::quiet_NaN();
    return text == "Infinity" ? std::numeric_limits<float>::infinity() : -std::numeric_limits<float>::infinity();
  }
  const auto number = static_cast<float>(value.get<double>());
  if (!std::isfinite(number)) place.refuse("the number " + value.dump() + " is beyond float32");
  return number;
}

std::vector<float> numbers_of(const Json& array, const Place& place) {
  std::vector<float> numbers;
  numbers.reserve(array.size());
  for (size_t i = 0; i < array.size(); ++i) numbers.push_back(number_of(array[i], place.below(i)));
  return numbers;
}

std::vector<float> numbers_of(const Json& holder, const char* name, int64_t count, const char* reason,
                              const Place& place) {
  const Json& array = holder.at(name);
  const Place here = place.below(name);
  if (static_cast<int64_t>(array.size()) != count)
    here.refuse(fmt::format("holds {} numbers, expected {}: {}", array.size(), count, reason));
  return numbers_of(array, here);
}

std::vector<int64_t> integers_of(const Json& array, const Place& place) {
  std::vector<int64_t> integers;
  integers.reserve(array.size());
  for (size_t i = 0; i < array.size(); ++i) {
    if (array[i].is_number_unsigned() && array[i].get<uint64_t>() > std::numeric_limits<int64_t>::max())
      place.below(i).refuse("the number " + array[i].dump() + " is beyond int64");
    integers.push_back(array[i].get<int64_t>());
  }
  return integers;
}

}  // namespace assay::golden
