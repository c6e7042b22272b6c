#include "fast/ops/op_runner.hpp"

#include <memory>
#include <type_traits>
#include <vector>

#include "cases/spec/error.hpp"
#include "fast/device/check.hpp"
#include "fast/device/device.hpp"
#include "fast/ops/flush_l2.hpp"
#include "fast/ops/prepared_op.hpp"

namespace assay::fast {

namespace {

constexpr int64_t kSlabBytes = int64_t{8} << 20;
constexpr int kWarmUp = 3;

struct DestroyEvent {
  void operator()(cudaEvent_t event) const { cudaEventDestroy(event); }
};
using Event = std::unique_ptr<std::remove_pointer_t<cudaEvent_t>, DestroyEvent>;

Event make_event() {
  cudaEvent_t event = nullptr;
  check(cudaEventCreate(&event), "cudaEventCreate");
  return Event(event);
}

}  // namespace

OpRunner::OpRunner()
    : arena_("op", context_.memory(), kSlabBytes), timing_arena_("timed op", context_.memory(), kSlabBytes, false) {}

OpResult OpRunner::run(const OpCall& call) {
  context_.forget_kernels();
  Scratch scratch(arena_);
  const PreparedOp op = prepare_op(context_, arena_, call);
  op.launch();
  OpResult result;
  for (const auto& [name, tensor] : op.outputs)
    result.outputs.push_back({name, download(tensor, name, context_.stream())});
  result.kernels = context_.kernels();
  scratch.close();
  return result;
}

OpTiming OpRunner::time(const OpCall& call, int repetitions) {
  if (repetitions < 1) throw InputError("time_op", "repetitions = " + std::to_string(repetitions) + ", at least 1");
  context_.forget_kernels();
  Scratch scratch(timing_arena_);
  const PreparedOp op = prepare_op(context_, timing_arena_, call);
  const int64_t flush_bytes = 4 * device_facts().l2_bytes;
  void* flush = timing_arena_.allocate(flush_bytes, "L2 flush");

  for (int i = 0; i < kWarmUp; ++i) op.launch();
  context_.synchronize("warm-up");
  std::vector<Event> starts, ends;
  for (int i = 0; i < repetitions; ++i) {
    starts.push_back(make_event());
    ends.push_back(make_event());
    // Also long enough to hide the launches behind it: they are queued before it ends.
    flush_l2(flush, flush_bytes, context_.stream());
    check(cudaEventRecord(starts.back().get(), context_.stream()), "cudaEventRecord");
    op.launch();
    check(cudaEventRecord(ends.back().get(), context_.stream()), "cudaEventRecord");
  }
  context_.synchronize("timed launches");

  OpTiming timing;
  for (size_t i = 0; i < starts.size(); ++i) {
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, starts[i].get(), ends[i].get()), "cudaEventElapsedTime");
    timing.time_us.push_back(1000.0 * static_cast<double>(milliseconds));
  }
  timing.bytes = op.bytes;
  timing.flops = op.flops;
  timing.kernels = context_.kernels();
  scratch.close();
  return timing;
}

}  // namespace assay::fast
