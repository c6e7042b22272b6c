#include "cases/spec/safetensors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "cases/spec/error.hpp"
#include "cases/spec/input_file.hpp"
#include "cases/spec/json.hpp"
#include "cases/spec/select.hpp"

namespace assay {

namespace {

using Json = nlohmann::json;

constexpr uint64_t kLargestHeader = 100'000'000;  // the format's own limit

struct Entry {
  DType dtype;
  Shape shape;
  uint64_t begin, end;  // within the data
};

DType parse_dtype(const Json& value, const std::string& where) {
  constexpr DType kKnown[] = {DType::kF64, DType::kF32, DType::kF16, DType::kBF16,
                              DType::kI64, DType::kI32, DType::kU8};
  std::string names;
  for (const DType dtype : kKnown) {
    if (value.is_string() && value.get<std::string>() == safetensors_name(dtype)) return dtype;
    names += (names.empty() ? "" : ", ") + std::string(safetensors_name(dtype));
  }
  throw InputError(where, "dtype " + value.dump() + " cannot be read", "known: " + names);
}

uint64_t parse_size(const Json& value, const std::string& where, const char* what) {
  if (!value.is_number_unsigned())
    throw InputError(where, fmt::format("{} must be whole numbers of 0 or more, got {}", what, value.dump()));
  return value.get<uint64_t>();
}

Entry parse_entry(const Json& value, const std::string& where, uint64_t data_bytes) {
  if (!value.is_object() || value.size() != 3 || !value.contains("dtype") || !value.contains("shape") ||
      !value.contains("data_offsets"))
    throw InputError(where, "must have exactly dtype, shape and data_offsets");
  Entry entry{parse_dtype(value.at("dtype"), where), {}, 0, 0};
  if (!value.at("shape").is_array()) throw InputError(where, "shape must be an array");
  for (const Json& dimension : value.at("shape")) {
    const uint64_t size = parse_size(dimension, where, "dimensions");
    if (size > static_cast<uint64_t>(INT64_MAX))
      throw InputError(where, fmt::format("dimension {} is too large", size));
    entry.shape.push_back(static_cast<int64_t>(size));
  }
  const Json& offsets = value.at("data_offsets");
  if (!offsets.is_array() || offsets.size() != 2) throw InputError(where, "data_offsets must be [begin, end]");
  entry.begin = parse_size(offsets[0], where, "data_offsets");
  entry.end = parse_size(offsets[1], where, "data_offsets");
  if (entry.begin > entry.end) throw InputError(where, "data_offsets are reversed");
  if (entry.end > data_bytes)
    throw InputError(where, fmt::format("ends at byte {} of {} bytes of data", entry.end, data_bytes),
                     "the file was cut short, or its header lies");
  int64_t count = 0;
  try {
    count = element_count(entry.shape);
  } catch (const InputError& error) {
    throw InputError(where, error.problem());
  }
  const auto elements = static_cast<uint64_t>(count);
  const uint64_t width = size_of(entry.dtype);
  if (elements > UINT64_MAX / width || elements * width != entry.end - entry.begin)
    throw InputError(where, fmt::format("shape {} of {} does not fill its {} bytes", to_string(entry.shape),
                                        safetensors_name(entry.dtype), entry.end - entry.begin));
  return entry;
}

class SafetensorsSource : public WeightSource {
 public:
  explicit SafetensorsSource(const std::filesystem::path& path) : file_(path) {
    if (file_.size() < 8) throw InputError(file_.path(), "is too short for a safetensors header");
    unsigned char length_bytes[8];
    file_.read(0, reinterpret_cast<std::byte*>(length_bytes), 8, "the header's length");
    uint64_t length = 0;
    for (int i = 7; i >= 0; --i) length = length << 8 | length_bytes[i];
    if (length > kLargestHeader || length > file_.size() - 8)
      throw InputError(file_.path(), fmt::format("header of {} bytes in a file of {}", length, file_.size()),
                       "not a safetensors file, or cut short");
    std::string header(length, '\0');
    file_.read(8, reinterpret_cast<std::byte*>(header.data()), length, "the header");
    if (header.empty() || header[0] != '{') throw InputError(file_.path(), "header does not start with '{'");
    data_ = 8 + length;
    const uint64_t data_bytes = file_.size() - data_;
    const Json document = parse_json(header, path);  // duplicate names are errors there
    for (const auto& [name, value] : document.items()) {
      const std::string where = file_.path() + " tensor '" + name + "'";
      if (name == "__metadata__") {
        check_metadata(value);
      } else {
        entries_.emplace(name, parse_entry(value, where, data_bytes));
      }
    }
    check_layout(data_bytes);
  }

  std::vector<std::string> names() const override {
    std::vector<std::string> all;
    for (const auto& entry : entries_) all.push_back(entry.first);
    return all;
  }
  bool has(const std::string& name) const override { return entries_.count(name) > 0; }

  TensorHeader header(const std::string& name) const override {
    const Entry& entry = find(name);
    return {name, entry.dtype, entry.shape};
  }

  HostTensor read(const std::string& name) const override {
    const Entry& entry = find(name);
    HostTensor tensor(entry.dtype, entry.shape);
    file_.read(data_ + entry.begin, tensor.bytes().data(), entry.end - entry.begin, "tensor '" + name + "'");
    return tensor;
  }

  HostTensor read_elements(const std::string& name, int64_t begin, int64_t count) const override {
    const Entry& entry = find(name);
    const auto width = static_cast<int64_t>(size_of(entry.dtype));
    const int64_t there = static_cast<int64_t>(entry.end - entry.begin) / width;
    if (begin < 0 || count < 0 || begin > there || count > there - begin)
      throw InputError(where(name), fmt::format("has {} elements, not {} from {} on", there, count, begin));
    HostTensor part(entry.dtype, {count});
    file_.read(data_ + entry.begin + static_cast<uint64_t>(begin * width), part.bytes().data(), part.bytes().size(),
               "tensor '" + name + "'");
    return part;
  }

  std::string where(const std::string& name) const override { return file_.path() + " tensor '" + name + "'"; }
  std::string place() const override { return file_.path(); }

 private:
  const Entry& find(const std::string& name) const {
    const auto found = entries_.find(name);
    if (found == entries_.end())
      throw InputError(file_.path(), "has no tensor '" + name + "'", "nearest: " + nearest_list(name, names()));
    return found->second;
  }

  void check_metadata(const Json& value) const {
    const std::string where = file_.path() + " __metadata__";
    if (!value.is_object()) throw InputError(where, "must be an object of strings");
    for (const auto& [key, text] : value.items())
      if (!text.is_string()) throw InputError(where, "'" + key + "' must be a string");
  }

  // Every byte belongs to exactly one tensor.
  void check_layout(uint64_t data_bytes) const {
    std::vector<const std::pair<const std::string, Entry>*> order;
    for (const auto& entry : entries_) order.push_back(&entry);
    std::sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
      return std::pair(a->second.begin, a->second.end) < std::pair(b->second.begin, b->second.end);
    });
    uint64_t at = 0;
    std::string before = "the start";
    for (const auto* entry : order) {
      const std::string where = file_.path() + " tensor '" + entry->first + "'";
      if (entry->second.begin < at) throw InputError(where, "overlaps " + before);
      if (entry->second.begin > at) throw InputError(where, "leaves a hole after " + before);
      at = entry->second.end;
      before = "'" + entry->first + "'";
    }
    if (at != data_bytes)
      throw InputError(file_.path(), fmt::format("has {} bytes after its last tensor", data_bytes - at));
  }

  InputFile file_;
  uint64_t data_ = 0;
  std::map<std::string, Entry> entries_;
};

}  // namespace

std::shared_ptr<const WeightSource> open_safetensors(const std::filesystem::path& file) {
  return std::make_shared<SafetensorsSource>(file);
}

}  // namespace assay
