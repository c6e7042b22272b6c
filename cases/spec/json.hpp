// Strict JSON: what nlohmann::json accepts less duplicate keys, trailing text and documents deeper than 64 levels;
// every error names file, line and column. Documents are checked against the closed schemas in cases/schema and
// golden/schema.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace assay {

nlohmann::json read_json(const std::filesystem::path& file);                          // errors of read_file, and below
nlohmann::json parse_json(std::string_view text, const std::filesystem::path& file);  // file only names it

// Throws InputError naming file, JSON pointer and what was expected. schema: file name of a schema that was built into
// the library ("config.schema.json").
void check_schema(const nlohmann::json& document, std::string_view schema, const std::filesystem::path& file);

// Shortest text that reads back to the same float32 / float64; "NaN", "Infinity", "-Infinity" come quoted.
std::string print_number(float value);
std::string print_number(double value);

// Canonical form for digests: sorted keys, no spaces, shortest numbers.
std::string canonical(const nlohmann::json& document);

// Writes to a temporary file beside it, syncs and renames, so a reader sees the old file or the new one. HarnessError
// naming the folder when it is missing, read-only or full.
void write_file(const std::filesystem::path& file, std::string_view text);
// The same in parts: `fill` hands them over in order. An error of fill leaves no file behind.
using WritePart = std::function<void(std::string_view)>;
void write_file(const std::filesystem::path& file, const std::function<void(const WritePart&)>& fill);

// A whole text. InputError naming the file when there is none, when it is no regular file (reading a pipe or a device
// might never end) or larger than `most_bytes`; HarnessError on I/O.
inline constexpr size_t kMostTextBytes = size_t{64} << 20;
std::string read_file(const std::filesystem::path& file, size_t most_bytes = kMostTextBytes);

}  // namespace assay
