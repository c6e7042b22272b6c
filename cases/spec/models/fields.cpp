#include "cases/spec/models/fields.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <vector>

#include "cases/spec/error.hpp"
#include "cases/spec/select.hpp"

namespace assay {

std::string FieldReader::where(const std::string& name) const {
  const std::string file = config_.file.empty() ? "config" : config_.file.string();
  return name.empty() ? file + " /config" : fmt::format("{} /config/{}", file, name);
}

void FieldReader::refuse(const char* name, const std::string& expected) const {
  const std::string got = has(name) ? config_.fields.at(name).dump() : "nothing";
  throw InputError(where(name), fmt::format("expected {}, got {}", expected, got));
}

int64_t FieldReader::size(const char* name, int64_t otherwise, int64_t least, int64_t most) const {
  if (!has(name)) return otherwise;
  const auto& value = config_.fields.at(name);
  const std::string expected = fmt::format("a whole number from {} to {}", least, most);
  if (!value.is_number_integer()) refuse(name, expected);
  if (value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(most)) refuse(name, expected);
  const auto number = value.get<int64_t>();
  if (number < least || number > most) refuse(name, expected);
  return number;
}

double FieldReader::positive(const char* name, double otherwise) const {
  if (!has(name)) return otherwise;
  const auto& value = config_.fields.at(name);
  if (!value.is_number() || !(value.get<double>() > 0) || !std::isfinite(value.get<double>()))
    refuse(name, "a finite number above 0");
  return value.get<double>();
}

bool FieldReader::flag(const char* name, bool otherwise) const {
  if (!has(name)) return otherwise;
  if (!config_.fields.at(name).is_boolean()) refuse(name, "true or false");
  return config_.fields.at(name).get<bool>();
}

std::pair<double, double> FieldReader::limits(const char* name, std::pair<double, double> otherwise) const {
  if (!has(name)) return otherwise;
  constexpr const char* kExpected = "[lo, hi] with 0 <= lo <= hi, hi a number or {\"__float__\": \"Infinity\"}";
  const auto& value = config_.fields.at(name);
  if (!value.is_array() || value.size() != 2) refuse(name, kExpected);
  const auto number = [&](const nlohmann::json& bound) {
    if (bound.is_number()) return bound.get<double>();
    const nlohmann::json& text =
        bound.is_object() && bound.size() == 1 && bound.contains("__float__") ? bound.at("__float__") : bound;
    if (text != "Infinity") refuse(name, kExpected);
    return std::numeric_limits<double>::infinity();
  };
  const std::pair<double, double> bounds(number(value[0]), number(value[1]));
  if (!(bounds.first >= 0 && bounds.first <= bounds.second) || std::isinf(bounds.first)) refuse(name, kExpected);
  return bounds;
}

int64_t FieldReader::expanded(int64_t hidden_size, double otherwise) const {
  const double product = positive("expand", otherwise) * static_cast<double>(hidden_size);
  if (!(product >= 1) || product > static_cast<double>(kLargestSize))
    refuse("expand", fmt::format("int(expand * hidden_size) from 1 to {}", kLargestSize));
  return static_cast<int64_t>(product);
}

void FieldReader::check_known(std::initializer_list<const char*> known) const {
  for (const auto& [name, value] : config_.fields.items()) {
    bool is_known = false;
    for (const char* entry : known) is_known = is_known || name == entry;
    if (is_known) continue;
    const std::vector<std::string> names(known.begin(), known.end());
    throw InputError(where(name), fmt::format("is not a field of {}", config_.model),
                     "nearest: " + nearest_list(name, names));
  }
}

void FieldReader::check_word(const char* name, std::string_view only) const {
  if (has(name) && config_.fields.at(name) != only) refuse(name, fmt::format("\"{}\"", only));
}

void FieldReader::check_flags(std::initializer_list<const char*> names) const {
  for (const char* name : names) flag(name, false);
}

void FieldReader::check_intermediate_size(int64_t recomputed) const {
  if (has("intermediate_size") && config_.fields.at("intermediate_size") != recomputed)
    refuse("intermediate_size", fmt::format("int(expand * hidden_size) = {}", recomputed));
}

void FieldReader::check_elements(double outside_layers, double each_layer, int64_t layers) const {
  constexpr double kMost = 0x1p40;
  const double all = outside_layers + each_layer * static_cast<double>(layers);
  if (all > kMost)
    throw InputError(where(""), fmt::format("its sizes together make {:.3g} elements of weights and states", all),
                     fmt::format("at most {:.3g} make sense", kMost));
}

}  // namespace assay
