// safetensors files (format: 8-byte little-endian header length, JSON header, data). Reading checks everything before
// the first tensor is touched: header length against file size, JSON (duplicate names, closed fields), dtype, shape
// products, offsets inside the data, no overlaps and no holes. A tensor's bytes are read when it is asked for, and a
// file that changed in between is an error (input_file.hpp). Errors are InputError naming file and tensor.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cases/spec/weight_source.hpp"

namespace assay {

std::shared_ptr<const WeightSource> open_safetensors(const std::filesystem::path& file);

void write_safetensors(const std::filesystem::path& file, const std::vector<NamedTensor>& tensors,
                       const std::map<std::string, std::string>& metadata);

// The same with one tensor in memory at a time: the file starts with what `headers` promise, then `read` is asked for
// each of them in order. HarnessError where it answers another dtype or shape.
using ReadTensor = std::function<HostTensor(const TensorHeader&)>;
void write_safetensors(const std::filesystem::path& file, const std::vector<TensorHeader>& headers,
                       const ReadTensor& read, const std::map<std::string, std::string>& metadata);

// What `read` answers for `header`, held against it: HarnessError naming file and tensor.
HostTensor read_promised(const std::filesystem::path& file, const TensorHeader& header, const ReadTensor& read);

}  // namespace assay
