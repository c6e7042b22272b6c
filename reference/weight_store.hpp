// WeightStore: a model's weights as float32 tensors under their canonical names, checked when they are read.
//
//   resident   every tensor is read once, at load
//   offloaded  a group (cases/spec/weight_groups.hpp) is read when one of its tensors is asked for; the two groups that
//              were asked for last stay, the others are dropped. Names and shapes are checked at load.
//
// Tensors are handed out by value: they share their storage with the store, and keep it alive as long as they live.
#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <optional>
#include <string>

#include "cases/spec/model_config.hpp"
#include "cases/spec/nf4.hpp"
#include "cases/spec/subject.hpp"
#include "cases/spec/weight_source.hpp"
#include "reference/counted_memory.hpp"

namespace assay::reference {

class WeightStore {
 public:
  virtual ~WeightStore() = default;
  virtual bool has(const std::string& name) const = 0;
  // InputError naming the tensor if the model has none of this name. Offloaded, the errors of reading: InputError
  // naming tensor and file; the store is then as it was, but for groups that it dropped.
  virtual at::Tensor at(const std::string& name) const = 0;
  // The parts of a quantised weight; absent for every other name. Offloaded, they are read again.
  virtual std::optional<Nf4Weight> nf4(const std::string& name) const = 0;
  // An undefined tensor if there is none: a bias that the config leaves out.
  at::Tensor find(const std::string& name) const { return has(name) ? at(name) : at::Tensor(); }
};

// Every tensor is held as held_weight says (reference/held_weight.hpp), with its errors; InputError naming the tensor
// when one is missing or not in the model's table, also if it is one of options.quantized. A tied lm_head.weight in the
// source is ignored: the embedding is the head (models.md part 6).
std::unique_ptr<WeightStore> open_store(const ModelConfig& config, std::shared_ptr<const WeightSource> source,
                                        const LoadOptions& options, std::shared_ptr<MemoryCount> count);

}  // namespace assay::reference
