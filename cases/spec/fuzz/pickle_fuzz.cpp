// read_state_dict, and what it promises of every tensor.
#include <algorithm>
#include <cstdlib>

#include "cases/spec/error.hpp"
#include "cases/spec/pickle.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t count) {
  const auto is_negative = [](int64_t value) { return value < 0; };
  try {
    for (const assay::PickledTensor& tensor :
         assay::read_state_dict({reinterpret_cast<const char*>(bytes), count}, "fuzz")) {
      if (tensor.storage.empty() || tensor.offset < 0 || tensor.storage_count < 0) std::abort();
      if (tensor.shape.size() != tensor.strides.size()) std::abort();
      if (std::any_of(tensor.shape.begin(), tensor.shape.end(), is_negative)) std::abort();
      if (std::any_of(tensor.strides.begin(), tensor.strides.end(), is_negative)) std::abort();
    }
  } catch (const assay::InputError&) {
  }
  return 0;
}
