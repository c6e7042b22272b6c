#include "cases/spec/weight_source.hpp"

#include <fmt/format.h>

#include <cstring>

#include "cases/spec/error.hpp"

namespace assay {

TensorHeader WeightSource::header(const std::string& name) const {
  const HostTensor tensor = read(name);
  return {name, tensor.dtype(), tensor.shape()};
}

HostTensor WeightSource::read_elements(const std::string& name, int64_t begin, int64_t count) const {
  const HostTensor whole = read(name);
  if (begin < 0 || count < 0 || begin > whole.count() || count > whole.count() - begin)
    throw InputError(where(name), fmt::format("has {} elements, not {} from {} on", whole.count(), count, begin));
  HostTensor part(whole.dtype(), {count});
  const size_t width = size_of(whole.dtype());
  if (count > 0)
    std::memcpy(part.bytes().data(), whole.bytes().data() + static_cast<size_t>(begin) * width, part.bytes().size());
  return part;
}

std::string WeightSource::where(const std::string& name) const { return "weight '" + name + "'"; }

}  // namespace assay
