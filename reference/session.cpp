#include "reference/session.hpp"

#include <utility>

#include "cases/spec/error.hpp"
#include "reference/call_check.hpp"
#include "reference/tensor.hpp"
#include "reference/torch_errors.hpp"

namespace assay::reference {

ReferenceSession::ReferenceSession(std::shared_ptr<const LoadedModel> model, const SessionOptions& options)
    : model_(std::move(model)), options_(options), forms_(options.forms) {
  if (options.rows < 1) throw InputError("session", "has " + std::to_string(options.rows) + " rows; 1 is the least");
  if (options.cache == CacheKind::kStatic && options.limit < 1)
    throw InputError("session", "a static cache needs a limit of 1 column or more");
  translated("session", [&] {
    states_ = model_->network->initial_states(options_.rows);
    if (options_.cache != CacheKind::kStatic) return;
    buffers_ = states_;
    for (LayerState& state : buffers_)
      for (const auto& [name, member] : LayerState::members())
        if (at::Tensor& tensor = state.*member; tensor.defined()) {
          Shape shape = tensor.sizes().vec();
          if (LayerState::grows(member)) shape[2] = options_.limit;
          tensor = allocate(shape);
        }
    keep(std::vector<LayerState>(states_));
  });
}

at::Tensor ReferenceSession::allocate(const Shape& shape) {
  ++cache_allocations_;
  return counted(at::zeros(shape), Held::kCache, model_->memory);
}

Trace ReferenceSession::forward(const Call& call) {
  const Network& network = *model_->network;
  check_call(call, options_.rows, length_, network.vocabulary());
  const int64_t columns = call.tokens.shape()[1];
  if (options_.cache == CacheKind::kStatic && length_ + columns > options_.limit)
    throw InputError(
        "static cache",
        "has a limit of " + std::to_string(options_.limit) + " columns and holds " + std::to_string(length_) + "; " +
            std::to_string(columns) + " more make " + std::to_string(length_ + columns),
        "reset the session, or start one with a limit of " + std::to_string(length_ + columns) + " or more");

  return translated("forward of " + model_->id, [&] {
    Probes probes(call.capture);
    Pass pass{{},     {},     at::arange(length_, length_ + columns, at::kLong).expand({options_.rows, columns}),
              forms_, probes, model_->rounds_to};
    if (!call.mask.absent()) {
      pass.seen_mask = to_aten(call.mask).to(at::kBool);
      pass.mask = pass.seen_mask.narrow(1, length_, columns).to(at::kFloat);
      pass.positions = (pass.seen_mask.cumsum(1) - 1).clamp_min(0).narrow(1, length_, columns);
    }
    std::vector<LayerState> states = states_;
    network.forward(to_aten(call.tokens), *model_->weights, states, pass);
    // Without a cache every call is a whole sequence: the states stay zero.
    if (options_.cache != CacheKind::kNone) {
      keep(states);
      length_ += columns;
    }
    return probes.take();
  });
}

void ReferenceSession::keep(const std::vector<LayerState>& states) {
  if (options_.cache != CacheKind::kStatic) {
    states_ = states;
    return;
  }
  for (size_t layer = 0; layer < states.size(); ++layer)
    for (const auto& [name, member] : LayerState::members()) {
      const at::Tensor& from = states[layer].*member;
      if (!from.defined()) continue;
      at::Tensor into = buffers_[layer].*member;
      if (LayerState::grows(member)) into = into.narrow(2, 0, from.size(2));
      into.copy_(from);
      states_[layer].*member = into;
    }
}

std::vector<StateAddress> ReferenceSession::state_addresses() const {
  std::vector<StateAddress> addresses;
  if (options_.cache != CacheKind::kStatic) return addresses;
  for (size_t layer = 0; layer < states_.size(); ++layer)
    for (const auto& [name, member] : LayerState::members())
      // Of the storage: a tensor without columns has no address of its own.
      if (const at::Tensor& state = states_[layer].*member; state.defined())
        addresses.push_back({"layers." + std::to_string(layer) + "." + name,
                             reinterpret_cast<uintptr_t>(state.storage().data_ptr().get())});
  return addresses;
}

std::vector<NamedTensor> ReferenceSession::states() const {
  if (options_.cache == CacheKind::kNone) return {};
  std::vector<NamedTensor> states;
  for (size_t layer = 0; layer < states_.size(); ++layer)
    for (const auto& [name, member] : LayerState::members())
      if (const at::Tensor& state = states_[layer].*member; state.defined())
        states.push_back({"layers." + std::to_string(layer) + "." + name, to_host(state)});
  return states;
}

void ReferenceSession::reset() {
  keep(model_->network->initial_states(options_.rows));
  length_ = 0;
}

void ReferenceSession::reorder(const std::vector<int64_t>& source) {
  if (static_cast<int64_t>(source.size()) != options_.rows)
    throw InputError("reorder", "names " + std::to_string(source.size()) + " rows, the session has " +
                                    std::to_string(options_.rows));
  for (size_t row = 0; row < source.size(); ++row)
    if (source[row] < 0 || source[row] >= options_.rows)
      throw InputError("reorder", "row " + std::to_string(row) + " would come from row " + std::to_string(source[row]) +
                                      ", the session has " + std::to_string(options_.rows));
  const at::Tensor index = to_aten(HostTensor({options_.rows}, source));
  std::vector<LayerState> states;
  for (const LayerState& state : states_) {
    LayerState reordered;
    for (const auto& [name, member] : LayerState::members())
      if ((state.*member).defined()) reordered.*member = (state.*member).index_select(0, index);
    states.push_back(std::move(reordered));
  }
  keep(states);
}

void ReferenceSession::crop(int64_t columns) {
  if (columns < 0 || columns > length_)
    throw InputError("crop",
                     "to " + std::to_string(columns) + " columns, the session holds " + std::to_string(length_));
  for (const LayerState& state : states_)
    for (const auto& [name, member] : LayerState::members())
      if ((state.*member).defined() && !LayerState::grows(member))
        throw UnsupportedError("session", "cannot crop: a recurrent state holds no earlier states to go back to (" +
                                              model_->id + ", " + name + ")");
  for (LayerState& state : states_)
    for (const auto& [name, member] : LayerState::members())
      if (at::Tensor& tensor = state.*member; tensor.defined()) tensor = tensor.narrow(2, 0, columns);
  length_ = columns;
}

}  // namespace assay::reference
