// A place in a golden's document, and numbers read at it. The schema has seen to the types.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace assay::golden {

// Where in which document: what an InputError names.
struct Place {
  const std::filesystem::path& file;
  std::string pointer;

  Place below(std::string_view step) const;
  Place below(size_t index) const;
  [[noreturn]] void refuse(std::string what, std::string advice = "") const;
};

// A number, or "NaN", "Infinity", "-Infinity". Refused: a number beyond float32.
float number_of(const nlohmann::json& value, const Place& place);

std::vector<float> numbers_of(const nlohmann::json& array, const Place& place);
// `count` numbers of the member `name` of holder, refused with the reason for the count.
std::vector<float> numbers_of(const nlohmann::json& holder, const char* name, int64_t count, const char* reason,
                              const Place& place);
std::vector<int64_t> integers_of(const nlohmann::json& array, const Place& place);  // refused: beyond int64

}  // namespace assay::golden
