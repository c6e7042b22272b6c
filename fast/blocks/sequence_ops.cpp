#include "fast/blocks/sequence_ops.hpp"

#include <cuda_runtime_api.h>

#include <initializer_list>
#include <string>

#include "fast/blocks/update_columns.hpp"
#include "fast/kernels/elementwise.hpp"

namespace assay::fast {

namespace {

// An output of an update step: the member that holds it, and its columns.
template <class Step>
struct StepOutput {
  float* Step::*member;
  ColumnOutput columns;
};

// The columns of a scan (selective_scan, ssd) one after another through its update kernel. `step` comes with what is
// the op's own: sizes, limits, the state.
template <class Params, class Step>
void run_updates(const Params& p, Step step, std::initializer_list<StepOutput<Step>> outputs,
                 void (*update)(const Step&, cudaStream_t), Context& context) {
  step.x_stride = p.length * p.x_stride;
  step.dt_stride = p.length * p.dt_stride;
  step.b_stride = p.length * p.b_stride;
  step.c_stride = p.length * p.c_stride;
  step.dt_bias = p.dt_bias;
  step.a = p.a;
  step.skip = p.skip;
  step.batch = p.batch;
  step.states = p.states;
  for (int64_t t = 0; t < p.length; ++t) {
    step.x = column(p.x, p.x_stride, t);
    step.dt = column(p.dt, p.dt_stride, t);
    step.b = column(p.b, p.b_stride, t);
    step.c = column(p.c, p.c_stride, t);
    if constexpr (requires { step.z; }) step.z = column(p.z, p.z_stride, t);
    for (const StepOutput<Step>& output : outputs) step.*output.member = output.columns.at(t);
    update(step, context.stream());
    for (const StepOutput<Step>& output : outputs) output.columns.store(t, context.stream());
  }
}

}  // namespace

void run_causal_conv1d(Context& context, Arena& scratch, CausalConv1dParams<float> p, SequenceForm form) {
  if (form == SequenceForm::kSequence) {
    causal_conv1d(p, context.stream());
    context.record(causal_conv1d_id(p));
    return;
  }
  const ColumnOutput y(scratch, p.y, p.batch, p.length, p.channels, "causal_conv1d column");
  CausalConv1dUpdateParams<float> step;
  step.x_stride = p.length * p.x_stride;
  step.weight = p.weight;
  step.bias = p.bias;
  step.state = state_in_place(context, scratch, p.initial_state, p.final_state, p.batch * p.channels * p.taps);
  step.batch = p.batch;
  step.channels = p.channels;
  step.taps = p.taps;
  step.has_silu = p.has_silu;
  for (int64_t t = 0; t < p.length; ++t) {
    step.x = column(p.x, p.x_stride, t);
    step.y = y.at(t);
    causal_conv1d_update(step, context.stream());
    y.store(t, context.stream());
  }
  context.record(causal_conv1d_update_id(step));
  if (p.mask == nullptr) return;
  MaskRowsParams<float> mask;
  mask.x = p.y;
  mask.y = p.y;
  mask.mask = p.mask;
  mask.mask_stride = p.mask_stride;
  mask.batch = p.batch;
  mask.length = p.length;
  mask.width = p.channels;
  mask_rows(mask, context.stream());
  context.record(mask_rows_id(mask));
}

void run_selective_scan(Context& context, Arena& scratch, SelectiveScanParams<float> p, SequenceForm form) {
  if (form == SequenceForm::kSequence) {
    if (const size_t bytes = selective_scan_workspace_bytes(p); bytes > 0)
      p.workspace = scratch.allocate(static_cast<int64_t>(bytes), "selective_scan workspace");
    selective_scan(p, context.stream());
    context.record(selective_scan_id(p));
    return;
  }
  using Step = SelectiveScanUpdateParams<float>;
  const auto columns = [&](float* tensor, const char* label) {
    return ColumnOutput(scratch, tensor, p.batch, p.length, p.channels, label);
  };
  Step step;
  step.z_stride = p.length * p.z_stride;
  step.state = state_in_place(context, scratch, p.initial_state, p.final_state, p.batch * p.channels * p.states);
  step.channels = p.channels;
  step.groups = p.groups;
  step.b_group_stride = p.b_group_stride;
  step.c_group_stride = p.c_group_stride;
  run_updates(p, step,
              {{&Step::y, columns(p.y, "selective_scan column")},
               {&Step::dt_out, columns(p.dt_out, "selective_scan dt column")},
               {&Step::ungated, columns(p.ungated, "selective_scan ungated column")}},
              selective_scan_update<float>, context);
  context.record(selective_scan_update_id(step));
}

void run_ssd(Context& context, Arena& scratch, SsdParams<float> p, SequenceForm form) {
  if (form == SequenceForm::kSequence) {
    if (const size_t bytes = ssd_workspace_bytes(p); bytes > 0)
      p.workspace = scratch.allocate(static_cast<int64_t>(bytes), "ssd workspace");
    ssd_chunked(p, context.stream());
    context.record(ssd_chunked_id(p));
    return;
  }
  using Step = SsdUpdateParams<float>;
  const auto columns = [&](float* tensor, int64_t width, const char* label) {
    return ColumnOutput(scratch, tensor, p.batch, p.length, width, label);
  };
  Step step;
  step.state = state_in_place(context, scratch, p.initial_state, p.final_state, p.batch * p.heads * p.width * p.states);
  step.heads = p.heads;
  step.width = p.width;
  step.groups = p.groups;
  step.dt_min = p.dt_min;
  step.dt_max = p.dt_max;
  run_updates(p, step,
              {{&Step::y, columns(p.y, p.heads * p.width, "ssd column")},
               {&Step::dt_out, columns(p.dt_out, p.heads, "ssd dt column")}},
              ssd_update<float>, context);
  context.record(ssd_update_id(step));
}

}  // namespace assay::fast
