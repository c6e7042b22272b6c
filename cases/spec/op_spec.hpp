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
};

struct OpSpec {
  std::string name;
  std::vector<std::string> sizes;  // in the order in which a shape is written
  std::vector<OpTensor> inputs, outputs;
  std::vector<std::string> attributes;
  std::vector<std::pair<std::string, std::string>> divides;  // {"G", "Nh"}: the first divides the second

  const OpTensor* input(const std::string& input_name) const;  // nullptr if it has none of that name
};

const std::vector<OpSpec>& op_specs();
const OpSpec& op_spec(const std::string& name);  // InputError with the nearest names

}  // namespace assay
