// WeightStore: a model's weights as float32 tensors under their canonical names, read and checked once.
#pragma once

#include <ATen/ATen.h>

#include <map>
#include <string>

#include "cases/spec/model_config.hpp"
#include "cases/spec/subject.hpp"
#include "cases/spec/weight_source.hpp"

namespace assay::reference {

class WeightStore {
 public:
  // Reads every tensor of the model's weight table, rounds it to `rounded_to` and widens it to float32. InputError
  // naming the tensor when one is missing, not in the table, of another shape, not floating point or not finite. A
  // tied lm_head.weight in the source is ignored: the embedding is the head (models.md part 6).
  WeightStore(const ModelConfig& config, const WeightSource& source, DType rounded_to);

  // InputError naming the tensor if the model has none of this name.
  const at::Tensor& at(const std::string& name) const;
  // An undefined tensor if there is none: a bias that the config leaves out.
  at::Tensor find(const std::string& name) const;

  int64_t count() const { return static_cast<int64_t>(weights_.size()); }
  int64_t bytes() const;

 private:
  std::string model_;
  std::map<std::string, at::Tensor> weights_;
};

}  // namespace assay::reference
