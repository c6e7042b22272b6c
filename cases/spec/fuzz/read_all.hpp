// Everything that a source lets one read. A file of a few kilobytes can name no tensor of more: one that is larger is a
// finding, as is whatever is no Error.
#pragma once

#include <cstdlib>

#include "cases/spec/error.hpp"
#include "cases/spec/weight_source.hpp"

namespace assay::fuzz {

inline void read_all(const WeightSource& source, size_t file_bytes) {
  for (const std::string& name : source.names()) {
    try {
      const TensorHeader header = source.header(name);
      const HostTensor whole = source.read(name);
      if (whole.bytes().size() > file_bytes) std::abort();
      if (whole.shape() != header.shape || whole.dtype() != header.dtype) std::abort();
      const int64_t half = whole.count() / 2;
      const HostTensor part = source.read_elements(name, half, whole.count() - half);
      for (int64_t i = 0; i < part.count(); ++i) {
        const double a = part.at(i), b = whole.at(half + i);
        if (a != b && (a == a || b == b)) std::abort();
      }
    } catch (const InputError&) {
      // A tensor's checksum is held against its bytes when they are read.
    }
  }
}

}  // namespace assay::fuzz
