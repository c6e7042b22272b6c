#include <fmt/format.h>

#include "cases/spec/error.hpp"
#include "cases/spec/json.hpp"
#include "cases/spec/safetensors.hpp"

namespace assay {

namespace {

using Json = nlohmann::json;

// The header's length, the header, and blanks up to a multiple of 8.
std::string file_start(const std::filesystem::path& file, const std::vector<TensorHeader>& headers,
                       const std::map<std::string, std::string>& metadata) {
  Json header = Json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  uint64_t at = 0;
  for (const TensorHeader& tensor : headers) {
    if (tensor.name == "__metadata__") throw InputError(file.string(), "__metadata__ cannot name a tensor");
    if (header.contains(tensor.name)) throw InputError(file.string(), "tensor '" + tensor.name + "' is given twice");
    const uint64_t end = at + static_cast<uint64_t>(element_count(tensor.shape)) * size_of(tensor.dtype);
    header[tensor.name] = {
        {"dtype", safetensors_name(tensor.dtype)}, {"shape", tensor.shape}, {"data_offsets", {at, end}}};
    at = end;
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const Json::exception&) {
    throw InputError(file.string(), "a tensor's name or a metadata string is not UTF-8");
  }
  text.append((8 - text.size() % 8) % 8, ' ');
  std::string start(8, '\0');
  for (int i = 0; i < 8; ++i) start[static_cast<size_t>(i)] = static_cast<char>(text.size() >> (8 * i));
  return start + text;
}

std::string_view text_of(const HostTensor& tensor) {
  const auto bytes = tensor.bytes();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

HostTensor read_promised(const std::filesystem::path& file, const TensorHeader& header, const ReadTensor& read) {
  HostTensor tensor = read(header);
  if (tensor.dtype() != header.dtype || tensor.shape() != header.shape)
    throw HarnessError(file.string(), fmt::format("tensor '{}' was promised as {} {}, and is {} {}", header.name,
                                                  safetensors_name(header.dtype), to_string(header.shape),
                                                  safetensors_name(tensor.dtype()), to_string(tensor.shape())));
  return tensor;
}

void write_safetensors(const std::filesystem::path& file, const std::vector<NamedTensor>& tensors,
                       const std::map<std::string, std::string>& metadata) {
  std::vector<TensorHeader> headers;
  for (const NamedTensor& tensor : tensors)
    headers.push_back({tensor.name, tensor.value.dtype(), tensor.value.shape()});
  const std::string start = file_start(file, headers, metadata);
  write_file(file, [&](const WritePart& write) {
    write(start);
    for (const NamedTensor& tensor : tensors) write(text_of(tensor.value));
  });
}

void write_safetensors(const std::filesystem::path& file, const std::vector<TensorHeader>& headers,
                       const ReadTensor& read, const std::map<std::string, std::string>& metadata) {
  const std::string start = file_start(file, headers, metadata);
  write_file(file, [&](const WritePart& write) {
    write(start);
    for (const TensorHeader& header : headers) write(text_of(read_promised(file, header, read)));
  });
}

}  // namespace assay
