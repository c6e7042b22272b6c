#include "reference/weight_store.hpp"

#include <algorithm>
#include <list>
#include <map>
#include <set>
#include <utility>

#include "cases/spec/error.hpp"
#include "cases/spec/model_spec.hpp"
#include "cases/spec/weight_groups.hpp"
#include "reference/held_weight.hpp"

namespace assay::reference {

namespace {

constexpr size_t kGroupsHeld = 2;

using Table = std::map<std::string, WeightSpec>;

void check_shape(const std::string& where, const WeightSpec& spec, const Shape& shape) {
  if (shape != spec.shape)
    throw InputError(where, "has shape " + to_string(shape) + ", the config asks for " + to_string(spec.shape));
}

Table checked_table(const ModelConfig& config, const WeightSource& source, const LoadOptions& options) {
  Table table;
  for (WeightSpec& spec : model_spec(config.model).weights(config)) table.emplace(spec.name, std::move(spec));
  for (const std::string& name : source.names())
    if (!table.contains(name) && name != "lm_head.weight")
      throw InputError("weight " + name, "is not a tensor of " + config.id(),
                       "its config.json belongs to other weights");
  for (const auto& [name, spec] : table)
    if (!source.has(name)) throw InputError("weight " + name, "is missing from the weights of " + config.id());
  for (const std::string& name : options.quantized)
    if (!table.contains(name)) throw InputError("weight " + name, "is to be quantised and not one of " + config.id());
  return table;
}

using Tensors = std::map<std::string, at::Tensor>;

class ResidentStore final : public WeightStore {
 public:
  ResidentStore(const ModelConfig& config, const WeightSource& source, const LoadOptions& options,
                const std::shared_ptr<MemoryCount>& count)
      : model_(config.id()) {
    for (const auto& [name, spec] : checked_table(config, source, options)) {
      HeldWeight weight = held_weight(spec, source, options);
      weights_.emplace(name, counted(weight.value, Held::kWeight, count));
      if (weight.nf4) nf4_.emplace(name, std::move(*weight.nf4));
    }
  }

  bool has(const std::string& name) const override { return weights_.contains(name); }
  at::Tensor at(const std::string& name) const override {
    const auto found = weights_.find(name);
    if (found == weights_.end()) throw InputError("weight " + name, "is not a tensor of " + model_);
    return found->second;
  }
  std::optional<Nf4Weight> nf4(const std::string& name) const override {
    const auto found = nf4_.find(name);
    return found == nf4_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  std::string model_;
  Tensors weights_;
  std::map<std::string, Nf4Weight> nf4_;
};

class OffloadedStore final : public WeightStore {
 public:
  OffloadedStore(const ModelConfig& config, std::shared_ptr<const WeightSource> source, LoadOptions options,
                 std::shared_ptr<MemoryCount> count)
      : model_(config.id()),
        source_(std::move(source)),
        options_(std::move(options)),
        count_(std::move(count)),
        table_(checked_table(config, *source_, options_)),
        groups_(weight_groups(config)) {
    for (const auto& [name, spec] : table_) check_shape(source_->where(name), spec, source_->header(name).shape);
    for (size_t group = 0; group < groups_.size(); ++group)
      for (const std::string& name : groups_[group].weights) group_of_.emplace(name, group);
  }

  bool has(const std::string& name) const override { return table_.contains(name); }
  at::Tensor at(const std::string& name) const override {
    const auto found = group_of_.find(name);
    if (found == group_of_.end()) throw InputError("weight " + name, "is not a tensor of " + model_);
    return held(found->second).at(name);
  }
  std::optional<Nf4Weight> nf4(const std::string& name) const override {
    const auto found = table_.find(name);
    return found == table_.end() ? std::nullopt : held_weight(found->second, *source_, options_).nf4;
  }

 private:
  // The group's tensors, as the most recent of those held.
  const Tensors& held(size_t group) const {
    const auto found =
        std::find_if(held_.begin(), held_.end(), [&](const auto& entry) { return entry.first == group; });
    if (found != held_.end()) {
      held_.splice(held_.begin(), held_, found);
      return held_.front().second;
    }
    while (held_.size() >= kGroupsHeld) held_.pop_back();  // before the next is read: three would be there at once
    Tensors tensors;
    for (const std::string& name : groups_[group].weights)
      tensors.emplace(name, counted(held_weight(table_.at(name), *source_, options_).value, Held::kWeight, count_));
    held_.emplace_front(group, std::move(tensors));
    return held_.front().second;
  }

  std::string model_;
  std::shared_ptr<const WeightSource> source_;
  LoadOptions options_;
  std::shared_ptr<MemoryCount> count_;
  Table table_;
  std::vector<WeightGroup> groups_;
  std::map<std::string, size_t> group_of_;
  mutable std::list<std::pair<size_t, Tensors>> held_;  // the last asked for first
};

}  // namespace

std::unique_ptr<WeightStore> open_store(const ModelConfig& config, std::shared_ptr<const WeightSource> source,
                                        const LoadOptions& options, std::shared_ptr<MemoryCount> count) {
  if (options.residency == Residency::kOffloaded)
    return std::make_unique<OffloadedStore>(config, std::move(source), options, std::move(count));
  return std::make_unique<ResidentStore>(config, *source, options, count);
}

}  // namespace assay::reference
