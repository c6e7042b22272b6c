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
  states_ = translated("session", [&] { return model_->network->initial_states(options_.rows); });
}

Trace ReferenceSession::forward(const Call& call) {
  const Network& network = *model_->network;
  check_call(call, options_.rows, length_, network.vocabulary());
  const int64_t columns = call.tokens.shape()[1];
  if (options_.cache == CacheKind::kStatic && length_ + columns > options_.limit)
    throw InputError("static cache", "is asked for " + std::to_string(length_ + columns) + " columns and holds " +
                                         std::to_string(options_.limit));

  return translated("forward of " + model_->id, [&] {
    Probes probes(call.capture);
    Pass pass{{}, forms_, probes};
    if (!call.mask.absent()) pass.mask = to_aten(call.mask).narrow(1, length_, columns).to(at::kFloat);
    std::vector<MixerState> states = states_;
    network.forward(to_aten(call.tokens), model_->weights, states, pass);
    // Without a cache every call is a whole sequence: the states stay zero.
    if (options_.cache != CacheKind::kNone) {
      keep(states);
      length_ += columns;
    }
    return probes.take();
  });
}

void ReferenceSession::keep(const std::vector<MixerState>& states) {
  if (options_.cache != CacheKind::kStatic) {
    states_ = states;
    return;
  }
  for (size_t layer = 0; layer < states.size(); ++layer) {
    states_[layer].conv.copy_(states[layer].conv);
    states_[layer].ssm.copy_(states[layer].ssm);
  }
}

std::vector<NamedTensor> ReferenceSession::states() const {
  if (options_.cache == CacheKind::kNone) return {};
  std::vector<NamedTensor> states;
  for (size_t layer = 0; layer < states_.size(); ++layer) {
    const std::string mixer = "layers." + std::to_string(layer) + ".mixer.";
    states.push_back({mixer + "conv_state", to_host(states_[layer].conv)});
    states.push_back({mixer + "ssm_state", to_host(states_[layer].ssm)});
  }
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
  std::vector<MixerState> states;
  for (const MixerState& state : states_)
    states.push_back({state.conv.index_select(0, index), state.ssm.index_select(0, index)});
  keep(states);
}

void ReferenceSession::crop(int64_t) {
  throw UnsupportedError("session", "cannot crop: a recurrent state holds no earlier states to go back to");
}

}  // namespace assay::reference
