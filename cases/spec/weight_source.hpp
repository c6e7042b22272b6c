// WeightSource: where a model's tensors come from. Names are those of the released checkpoints' layout.
// A subject reads each tensor when it loads (or, offloaded, when it needs it); it must not assume read() is cheap.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cases/spec/host_tensor.hpp"
#include "cases/spec/nf4.hpp"

namespace assay {

struct TensorHeader {
  std::string name;
  DType dtype = DType::kF32;
  Shape shape;
};

class WeightSource {
 public:
  virtual ~WeightSource() = default;
  virtual std::vector<std::string> names() const = 0;
  virtual bool has(const std::string& name) const = 0;
  // InputError naming the tensor (and file) if it is missing, cut short, or of a dtype that cannot be read.
  virtual HostTensor read(const std::string& name) const = 0;

  // dtype and shape without the values; reads the tensor unless the source knows better. Errors of read().
  virtual TensorHeader header(const std::string& name) const;
  // Elements [begin, begin + count) of the flattened tensor as [count]; reads the whole tensor unless the source knows
  // better. Errors of read(), and InputError where the tensor has no such elements.
  virtual HostTensor read_elements(const std::string& name, int64_t begin, int64_t count) const;
  // The parts of a tensor that is stored quantised; read() dequantises it. Absent for every other tensor.
  virtual std::optional<Nf4Weight> nf4(const std::string& /*name*/) const { return std::nullopt; }
  // How a message names the tensor: with its file, where it has one.
  virtual std::string where(const std::string& name) const;
  // The file that holds the tensors, or their index; empty where they are drawn.
  virtual std::string place() const { return ""; }
};

}  // namespace assay
