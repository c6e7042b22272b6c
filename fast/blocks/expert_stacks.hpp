// ExpertStacks: how the matrices of experts that a checkpoint holds one by one lie on the device: behind one another,
// as the kernels of fast/kernels/experts.hpp read them.
//
// Of a layer's tensors "<prefix>experts.<e>.<part>" the last part of each expert (in the order of the table) is the one
// back, and goes to the stack "<prefix>experts.down" [E, ...]; those before it go to "<prefix>experts.first", expert by
// expert [E, parts, ...]: gate before up.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cases/spec/model_spec.hpp"

namespace assay::fast {

struct StackedPlace {
  std::string stack;
  int64_t begin = 0;  // elements
};

class ExpertStacks {
 public:
  explicit ExpertStacks(const std::vector<WeightSpec>& table);

  const StackedPlace* find(const std::string& name) const;  // null: a tensor by itself
  int64_t size(const std::string& stack) const { return sizes_.at(stack); }

 private:
  std::map<std::string, StackedPlace> places_;
  std::map<std::string, int64_t> sizes_;
};

}  // namespace assay::fast
