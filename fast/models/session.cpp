#include "fast/models/session.hpp"

#include <utility>

#include "cases/spec/error.hpp"
#include "fast/models/arguments.hpp"
#include "fast/models/call_inputs.hpp"
#include "fast/models/forms.hpp"

namespace assay::fast {

namespace {
constexpr int64_t kSlabBytes = int64_t{8} << 20;
}  // namespace

FastSession::FastSession(std::shared_ptr<LoadedModel> model, const SessionOptions& options)
    : model_(std::move(model)),
      options_(options),
      states_(model_->context, model_->network->state_shapes(), options.rows),
      scratch_("scratch", model_->context.memory(), kSlabBytes) {
  check_session_options(options);
  check_forms(options.forms);
  if (options.cache != CacheKind::kStatic) return;
  states_.allocate(options.limit);
  step_graph_ = std::make_unique<StepGraph>(model_->context, *model_->network, options.rows, options.limit);
}

Trace FastSession::forward(const Call& call) {
  if (is_broken_)
    throw HarnessError("session of " + model_->id,
                       "the last call failed on the device and left its states half written", "reset the session");
  const int64_t limit = options_.cache == CacheKind::kStatic ? options_.limit : 0;
  const int64_t columns = check_call(call, options_.rows, length_, model_->network->vocabulary(), limit);
  if (options_.cache == CacheKind::kDynamic) {
    if (!states_.are_allocated()) states_.allocate(columns);
    states_.grow(length_ + columns, length_);
  }
  is_broken_ = has_cache();
  Trace trace = run(call);
  is_broken_ = false;
  if (has_cache()) length_ += columns;
  return trace;
}

Trace FastSession::run(const Call& call) {
  Context& context = model_->context;
  const int64_t columns = call.tokens.shape()[1];
  const bool is_warm = has_cache() && length_ > 0;
  const PassForms forms = pass_forms(options_.forms, columns, is_warm);
  kernels_.clear();
  if (step_graph_ != nullptr && is_warm && columns == 1)
    if (std::optional<Trace> trace = step_graph_->run(call, length_, states_.pointers(), forms)) {
      std::vector<const Arena*> arenas;
      step_graph_->add_arenas(arenas);
      check_guards(std::move(arenas));
      kernels_ = step_graph_->kernels();
      return std::move(*trace);
    }

  context.forget_kernels();
  Scratch scratch(scratch_);
  Probes probes(options_.rows, columns, call.capture, context.stream());
  Pass pass{.context = context, .scratch = scratch_, .probes = probes};
  place_inputs(pass, call, options_.rows, length_);
  pass.is_warm = is_warm;
  pass.forms = forms;
  pass.states = states_.pointers();
  model_->network->forward(pass);
  context.synchronize("forward");
  check_guards({&scratch_});
  scratch.drop();
  kernels_ = context.kernels();
  return {probes.take()};
}

void FastSession::check_guards(std::vector<const Arena*> arenas) const {
  states_.add_arenas(arenas);
  arenas.push_back(&model_->weights_arena);
  Arena::check_guards(arenas);
}

std::vector<StateAddress> FastSession::state_addresses() const {
  return options_.cache == CacheKind::kStatic ? states_.addresses() : std::vector<StateAddress>();
}

std::vector<NamedTensor> FastSession::states() const {
  return has_cache() ? states_.download(length_) : std::vector<NamedTensor>();
}

void FastSession::reset() {
  states_.reset();
  length_ = 0;
  is_broken_ = false;
  kernels_.clear();
}

void FastSession::reorder(const std::vector<int64_t>& source) {
  check_reorder(source, options_.rows);
  states_.reorder(source, length_, scratch_);
}

void FastSession::crop(int64_t columns) {
  if (columns < 0 || columns > length_)
    throw InputError("crop",
                     "to " + std::to_string(columns) + " columns, the session holds " + std::to_string(length_));
  if (const std::string state = states_.first_recurrent(); !state.empty())
    throw UnsupportedError("session", "cannot crop: a recurrent state holds no earlier states to go back to (" +
                                          model_->id + ", " + state + ")");
  length_ = columns;
}

}  // namespace assay::fast
