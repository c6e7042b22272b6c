#include "fast/models/step_graph.hpp"

#include <algorithm>

#include "cases/spec/error.hpp"
#include "fast/device/check.hpp"
#include "fast/models/arguments.hpp"

namespace assay::fast {

namespace {

constexpr int64_t kInputBytes = int64_t{64} << 10;
constexpr int64_t kSlabBytes = int64_t{2} << 20;
constexpr int kMostFailures = 2;

template <class T>
void write(T* to, const std::vector<T>& values, cudaStream_t stream) {
  check(cudaMemcpyAsync(to, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice, stream),
        "upload of a step's inputs");
}

}  // namespace

// scratch keeps every buffer of the recorded pass: none is handed out twice, for the graph goes on writing there.
struct StepGraph::Captured {
  explicit Captured(Memory& memory)
      : scratch("step graph scratch", memory, kSlabBytes), probes("step graph probes", memory, kSlabBytes) {
    scratch.hold();
  }
  ~Captured() {
    if (graph != nullptr) cudaGraphExecDestroy(graph);
  }
  Captured(const Captured&) = delete;
  Captured& operator=(const Captured&) = delete;

  Arena scratch, probes;
  std::vector<KeptProbe> kept;
  std::vector<std::string> kernels;
  cudaGraphExec_t graph = nullptr;
};

StepGraph::StepGraph(Context& context, const Network& network, int64_t rows, int64_t limit)
    : context_(context),
      network_(network),
      rows_(rows),
      limit_(limit),
      inputs_("step graph inputs", context.memory(), kInputBytes) {
  numbers_ = allocate<int64_t>(inputs_, {2 * rows + 1}, "tokens, positions, columns").data;
  mask_ = allocate<uint8_t>(inputs_, {rows}, "mask").data;
  seen_ = allocate<uint8_t>(inputs_, {rows, limit}, "mask of all columns").data;
}

StepGraph::~StepGraph() = default;

void StepGraph::add_arenas(std::vector<const Arena*>& to) const {
  to.push_back(&inputs_);
  if (replayed_ == nullptr) return;
  to.push_back(&replayed_->scratch);
  to.push_back(&replayed_->probes);
}

std::optional<Trace> StepGraph::run(const Call& call, int64_t past, const std::vector<LayerState>& states,
                                    const PassForms& forms) {
  const std::vector<int64_t> padding = padding_of(call, rows_);
  const int64_t longest = *std::max_element(padding.begin(), padding.end());
  const Kind kind{call.capture, longest > past, longest > 0};
  std::unique_ptr<Captured>& captured = captured_[kind];
  if (captured == nullptr) {
    if (failures_[kind] == kMostFailures) return std::nullopt;
    auto made = std::make_unique<Captured>(context_.memory());
    if (!capture(kind, states, forms, *made)) {
      ++failures_[kind];
      return std::nullopt;
    }
    captured = std::move(made);
  }

  write_inputs(call, past);
  check(cudaGraphLaunch(captured->graph, context_.stream()), "cudaGraphLaunch");
  context_.synchronize("replay of a step");
  replayed_ = captured.get();
  kernels_ = captured->kernels;
  return Trace{download_kept(captured->kept, context_.stream())};
}

void StepGraph::write_inputs(const Call& call, int64_t past) {
  const cudaStream_t stream = context_.stream();
  const std::vector<int64_t> padding = padding_of(call, rows_), positions = positions_of(padding, past, 1);
  const auto tokens = call.tokens.values<int64_t>();
  numbers_host_.assign(tokens.begin(), tokens.end());
  numbers_host_.insert(numbers_host_.end(), positions.begin(), positions.end());
  numbers_host_.push_back(past);
  write(numbers_, numbers_host_, stream);
  if (std::all_of(padding.begin(), padding.end(), [](int64_t pad) { return pad == 0; })) return;
  mask_host_ = mask_of(padding, past, 1);
  write(mask_, mask_host_, stream);
  if (padding == seen_padding_) return;
  seen_host_ = mask_of(padding, 0, limit_);
  write(seen_, seen_host_, stream);
  seen_padding_ = padding;
}

Pass StepGraph::pass_of(const Kind& kind, Arena& scratch, Probes& probes) const {
  Pass pass{.context = context_, .scratch = scratch, .probes = probes};
  pass.rows = rows_;
  pass.columns = 1;
  pass.tokens = numbers_;
  pass.positions = numbers_ + rows_;
  pass.past_on_device = numbers_ + 2 * rows_;
  if (kind.has_mask) pass.mask = mask_;
  pass.mask_stride = 1;
  if (kind.has_seen_mask) pass.seen_mask = seen_;
  pass.seen_mask_stride = limit_;
  pass.is_warm = true;
  return pass;
}

bool StepGraph::capture(const Kind& kind, const std::vector<LayerState>& states, const PassForms& forms,
                        Captured& into) {
  const cudaStream_t stream = context_.stream();
  Probes probes(rows_, 1, kind.has_capture, stream, &into.probes);
  Pass pass = pass_of(kind, into.scratch, probes);
  pass.states = states;
  pass.forms = forms;
  context_.forget_kernels();

  // Relaxed: slabs are allocated while the pass is recorded.
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), "cudaStreamBeginCapture");
  cudaGraph_t recorded = nullptr;
  const auto drop = [&] {
    if (recorded != nullptr) cudaGraphDestroy(recorded);
    cudaGetLastError();  // what a broken capture leaves behind
  };
  try {
    network_.forward(pass);
  } catch (const HarnessError&) {
    cudaStreamEndCapture(stream, &recorded);
    drop();
    return false;
  } catch (...) {
    cudaStreamEndCapture(stream, &recorded);
    drop();
    throw;
  }
  const bool is_recorded = cudaStreamEndCapture(stream, &recorded) == cudaSuccess && recorded != nullptr;
  const bool is_ready = is_recorded && cudaGraphInstantiate(&into.graph, recorded, 0) == cudaSuccess;
  drop();
  if (!is_ready) return false;
  into.kept = probes.take_kept();
  into.kernels = context_.kernels();
  into.kernels.emplace_back(kStepGraphId);
  return true;
}

}  // namespace assay::fast
