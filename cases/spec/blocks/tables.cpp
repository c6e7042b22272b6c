#include "cases/spec/blocks/tables.hpp"

namespace assay {

void ProbeTable::add(std::string name, Shape shape, std::string op, int64_t layer) {
  ProbeSpec probe;
  probe.name = std::move(name);
  probe.shape = std::move(shape);
  probe.op = std::move(op);
  probe.layer = layer;
  sequence_.push_back(std::move(probe));
}

void ProbeTable::add_sparse(std::string name, Shape shape, std::string op, int64_t layer) {
  add(std::move(name), std::move(shape), std::move(op), layer);
  sequence_.back().is_sparse = true;
}

void ProbeTable::add_state(std::string name, Shape shape, std::string op, int64_t layer, int64_t heads) {
  ProbeSpec probe;
  probe.name = std::move(name);
  probe.shape = std::move(shape);
  probe.is_state = true;
  probe.op = std::move(op);
  probe.layer = layer;
  probe.state_heads = heads;
  states_.push_back(std::move(probe));
}

void ProbeTable::add_growing_state(std::string name, Shape column, std::string op, int64_t layer, std::string follows) {
  add_state(std::move(name), std::move(column), std::move(op), layer);
  states_.back().follows = std::move(follows);
}

std::vector<ProbeSpec> ProbeTable::take() {
  std::vector<ProbeSpec> all = std::move(sequence_);
  for (ProbeSpec& state : states_) all.push_back(std::move(state));
  sequence_.clear();
  states_.clear();
  return all;
}

void describe_linear(WeightTable& table, const std::string& name, int64_t out, int64_t in, Role role, bool has_bias,
                     std::vector<WeightSpec::RowScale> row_scales) {
  table.push_back({name + ".weight", {out, in}, role, in, std::move(row_scales)});
  if (has_bias) table.push_back({name + ".bias", {out}, Role::kLinearBias, 1, {}});
}

}  // namespace assay
