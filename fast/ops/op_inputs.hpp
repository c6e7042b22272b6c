// OpInputs: the inputs and attributes of an OpCall, checked against the op's contract (cases/ops/README.md) and brought
// to the device. Shapes are given as letters, "BLC"; a letter has one size in all of an op's inputs. Everything refused
// is an InputError naming op and input.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "cases/spec/subject.hpp"
#include "fast/device/tensor.hpp"

namespace assay::fast {

class OpInputs {
 public:
  OpInputs(const OpCall& call, Arena& arena, cudaStream_t stream) : call_(call), arena_(arena), stream_(stream) {}

  const float* required(const std::string& name, std::string_view letters);
  const float* optional(const std::string& name, std::string_view letters);  // null if left out
  const int64_t* ids(const std::string& name, std::string_view letters);     // int64, each >= 0
  int64_t largest_id() const { return largest_id_; }
  const uint8_t* optional_mask(const std::string& name, std::string_view letters);

  int64_t size(char letter) const { return sizes_.at(letter); }
  double attribute(const std::string& name, double otherwise);
  int64_t count_attribute(const std::string& name, int64_t otherwise);  // a whole number of at least 1

  // Call after the last input and attribute: whatever was given and not asked for is refused.
  void finish() const;
  double input_bytes() const { return input_bytes_; }
  [[noreturn]] void refuse(const std::string& name, const std::string& problem) const;

 private:
  const HostTensor& take(const std::string& name, std::string_view letters, DType dtype);

  const OpCall& call_;
  Arena& arena_;
  cudaStream_t stream_;
  std::map<char, int64_t> sizes_;
  std::set<std::string> asked_inputs_, asked_attributes_;
  int64_t largest_id_ = 0;
  double input_bytes_ = 0;
};

// Bytes of a float32 table that no id names, which counted as an input but are not read: of `count` entries of `width`
// elements.
double unread_bytes(const HostTensor& ids, int64_t count, int64_t width);

}  // namespace assay::fast
