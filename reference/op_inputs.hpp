// OpInputs: the inputs of one op call as tensors, their shapes checked letter by letter. The first use of a letter
// binds it to a size, later uses must agree: tensor("x", "BLC"), then tensor("weight", "CK").
#pragma once

#include <ATen/ATen.h>

#include <map>
#include <set>
#include <string>
#include <string_view>

#include "cases/spec/subject.hpp"

namespace assay::reference {

class OpInputs {
 public:
  explicit OpInputs(const OpCall& call) : call_(call) {}

  // float32 or float64, one dtype for all inputs of a call. InputError naming op and input.
  at::Tensor tensor(const std::string& name, std::string_view letters);
  at::Tensor find(const std::string& name, std::string_view letters);  // undefined if left out
  at::Tensor ids(const std::string& name, std::string_view letters);   // int64
  // uint8 of 0 and 1, as `like`'s dtype; undefined if left out
  at::Tensor find_mask(const std::string& name, std::string_view letters, const at::Tensor& like);

  double attribute(const std::string& name, double otherwise);
  int64_t count_attribute(const std::string& name, int64_t otherwise);  // a whole number, at least 1

  int64_t size(char letter) const { return sizes_.at(letter); }

  // InputError for an input or attribute that the op does not have. Called once all were asked for.
  void finish() const;

 private:
  void bind(const std::string& name, const HostTensor& value, std::string_view letters);
  [[noreturn]] void refuse(const std::string& name, const std::string& problem) const;

  const OpCall& call_;
  std::map<char, int64_t> sizes_;
  std::set<std::string> asked_inputs_, asked_attributes_;
  const HostTensor* first_ = nullptr;  // sets the dtype
};

}  // namespace assay::reference
