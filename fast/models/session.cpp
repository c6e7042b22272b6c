#include "fast/models/session.hpp"

#include <utility>

#include "cases/spec/error.hpp"
#include "fast/device/check.hpp"
#include "fast/models/arguments.hpp"

namespace assay::fast {

namespace {

constexpr int64_t kSlabBytes = int64_t{8} << 20;

Shape with_rows(int64_t rows, const Shape& inner) {
  Shape shape = {rows};
  shape.insert(shape.end(), inner.begin(), inner.end());
  return shape;
}

std::string state_name(size_t layer, const char* which) {
  return "layers." + std::to_string(layer) + ".mixer." + which;
}

}  // namespace

FastSession::FastSession(std::shared_ptr<LoadedModel> model, const SessionOptions& options)
    : model_(std::move(model)),
      options_(options),
      conv_form_(form_choice(options.forms, "causal_conv1d")),
      scan_form_(form_choice(options.forms, model_->network->scan_op())),
      states_arena_("states", model_->context.memory(), kSlabBytes),
      scratch_("scratch", model_->context.memory(), kSlabBytes) {
  check_session_options(options);
  check_forms(options.forms);
  if (options.cache == CacheKind::kStatic) allocate_states();
}

void FastSession::allocate_states() {
  const LayerStateShape shape = model_->network->state_shape();
  const auto layers = static_cast<size_t>(model_->network->layers());
  std::vector<LayerTensors> states;
  for (size_t layer = 0; layer < layers; ++layer)
    states.push_back(
        {allocate<float>(states_arena_, with_rows(options_.rows, shape.conv), state_name(layer, "conv_state")),
         allocate<float>(states_arena_, with_rows(options_.rows, shape.ssm), state_name(layer, "ssm_state"))});
  for (const LayerTensors& state : states) {
    zero(state.conv, model_->context.stream());
    zero(state.ssm, model_->context.stream());
  }
  states_ = std::move(states);
}

Trace FastSession::forward(const Call& call) {
  if (is_broken_)
    throw HarnessError("session of " + model_->id,
                       "the last call failed on the device and left its states half written", "reset the session");
  const int64_t limit = options_.cache == CacheKind::kStatic ? options_.limit : 0;
  const int64_t columns = check_call(call, options_.rows, length_, model_->network->vocabulary(), limit);
  if (has_cache() && states_.empty()) allocate_states();
  is_broken_ = has_cache();
  Trace trace = run(call, columns);
  is_broken_ = false;
  if (has_cache()) length_ += columns;
  return trace;
}

Trace FastSession::run(const Call& call, int64_t columns) {
  Context& context = model_->context;
  context.forget_kernels();
  kernels_.clear();
  Scratch scratch(scratch_);

  Probes probes(options_.rows, columns, call.capture, context.stream());
  Pass pass{.context = context, .scratch = scratch_, .probes = probes, .states = {}};
  pass.rows = options_.rows;
  pass.columns = columns;
  pass.tokens = upload<int64_t>(scratch_, call.tokens, "tokens", context.stream()).data;
  const std::vector<uint8_t> mask = mask_of_columns(call, options_.rows, length_, columns);
  if (!mask.empty()) {
    const Tensor<uint8_t> resident = allocate<uint8_t>(scratch_, {options_.rows, columns}, "mask");
    check(cudaMemcpyAsync(resident.data, mask.data(), mask.size(), cudaMemcpyHostToDevice, context.stream()),
          "upload of mask");
    context.synchronize("upload of mask");
    pass.mask = resident.data;
  }
  pass.is_warm = has_cache() && length_ > 0;
  pass.conv_form = form_of_call(conv_form_, columns, pass.is_warm);
  pass.scan_form = form_of_call(scan_form_, columns, pass.is_warm);
  pass.states.resize(static_cast<size_t>(model_->network->layers()));
  for (size_t layer = 0; layer < states_.size(); ++layer)
    pass.states[layer] = {states_[layer].conv.data, states_[layer].ssm.data};

  model_->network->forward(pass);
  context.synchronize("forward");
  scratch.close();
  states_arena_.check_guards();
  model_->weights_arena.check_guards();
  kernels_ = context.kernels();
  return {probes.take()};
}

std::vector<NamedTensor> FastSession::states() const {
  std::vector<NamedTensor> states;
  if (!has_cache()) return states;
  const LayerStateShape shape = model_->network->state_shape();
  const auto layers = static_cast<size_t>(model_->network->layers());
  for (size_t layer = 0; layer < layers; ++layer) {
    const auto add = [&](const char* which, const Tensor<float>* tensor, const Shape& inner) {
      const std::string name = state_name(layer, which);
      states.push_back({name, tensor != nullptr ? download(*tensor, name, model_->context.stream())
                                                : HostTensor(DType::kF32, with_rows(options_.rows, inner))});
    };
    const LayerTensors* state = states_.empty() ? nullptr : &states_[layer];
    add("conv_state", state != nullptr ? &state->conv : nullptr, shape.conv);
    add("ssm_state", state != nullptr ? &state->ssm : nullptr, shape.ssm);
  }
  return states;
}

void FastSession::reset() {
  states_arena_.poison();
  for (const LayerTensors& state : states_) {
    zero(state.conv, model_->context.stream());
    zero(state.ssm, model_->context.stream());
  }
  length_ = 0;
  is_broken_ = false;
  kernels_.clear();
}

void FastSession::reorder(const std::vector<int64_t>& source) {
  check_reorder(source, options_.rows);
  const cudaStream_t stream = model_->context.stream();
  Scratch scratch(scratch_);
  for (const LayerTensors& state : states_)
    for (const Tensor<float>* tensor : {&state.conv, &state.ssm}) {
      Scratch copy_scratch(scratch_);
      const Tensor<float> old = allocate<float>(scratch_, tensor->shape, "reorder");
      const int64_t row = tensor->count() / options_.rows;
      const size_t row_bytes = static_cast<size_t>(row) * sizeof(float);
      check(cudaMemcpyAsync(old.data, tensor->data, row_bytes * static_cast<size_t>(options_.rows),
                            cudaMemcpyDeviceToDevice, stream),
            "reorder");
      for (int64_t b = 0; b < options_.rows; ++b)
        check(cudaMemcpyAsync(tensor->data + b * row, old.data + source[static_cast<size_t>(b)] * row, row_bytes,
                              cudaMemcpyDeviceToDevice, stream),
              "reorder");
      copy_scratch.close();
    }
  scratch.close();
}

void FastSession::crop(int64_t) {
  throw UnsupportedError("session", "cannot crop: a recurrent state does not hold the states before it");
}

}  // namespace assay::fast
