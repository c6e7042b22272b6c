// WeightSource: where a model's tensors come from. Names are those of the released checkpoints' layout.
// A subject reads each tensor when it loads (or, offloaded, when it needs it); it must not assume read() is cheap.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cases/spec/host_tensor.hpp"

namespace assay {

class WeightSource {
 public:
  virtual ~WeightSource() = default;
  virtual std::vector<std::string> names() const = 0;
  virtual bool has(const std::string& name) const = 0;
  // InputError naming the tensor (and file) if it is missing, cut short, or of a dtype that cannot be read.
  virtual HostTensor read(const std::string& name) const = 0;
};

}  // namespace assay
