// OpSpec: the contract of an op as data: the names, shapes and dtypes of its inputs and outputs, and its attributes.
// cases/ops/README.md says what they mean.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cases/spec/host_tensor.hpp"

namespace assay {

struct OpTensor {
  std::string name;
  std::vector<std::string> sizes;  // names of its dimensions, slowest first: {"B", "L", "Nh", "P"}
  DType dtype = DType::kF32;
  bool is_optional = false;  // input: may be left out
  std::string with;          // output: computed only if this input is given; empty = always
  std::string indexes;       // int64 input: the size of which its elements are entries; empty = none
};

struct OpSpec {
  std::string name;
  // In the order in which a shape is written. One that no input has (how many are wanted) goes along as an attribute.
  std::vector<std::string> sizes;
  std::vector<OpTensor> inputs, outputs;
  std::vector<std::string> attributes;
  std::vector<std::pair<std::string, std::string>> divides;  // {"G", "Nh"}: the first divides the second

  const OpTensor* input(const std::string& input_name) const;  // nullptr if it has none of that name
};

const std::vector<OpSpec>& op_specs();
const OpSpec& op_spec(const std::string& name);  // InputError with the nearest names

}  // namespace assay
