#include "fast/blocks/sequence_ops.hpp"

#include <cuda_runtime_api.h>

#include <string>

#include "fast/blocks/update_columns.hpp"
#include "fast/kernels/elementwise.hpp"

namespace assay::fast {

namespace {

// What a column of a scan (selective_scan, ssd) takes from its sequence, but for what moves from column to column.
template <class Step, class Params>
Step step_of(const Params& p) {
  Step step;
  step.x_stride = p.length * p.x_stride;
  step.dt_stride = p.length * p.dt_stride;
  step.b_stride = p.length * p.b_stride;
  step.c_stride = p.length * p.c_stride;
  step.dt_bias = p.dt_bias;
  step.a = p.a;
  step.skip = p.skip;
  step.batch = p.batch;
  step.states = p.states;
  return step;
}

}  // namespace

void run_causal_conv1d(Context& context, Arena& scratch, CausalConv1dParams<float> p, SequenceForm form) {
  if (form == SequenceForm::kSequence) {
    causal_conv1d(p, context.stream());
    context.record(causal_conv1d_id(p));
    return;
  }
  using Step = CausalConv1dUpdateParams<float>;
  Step step;
  step.x_stride = p.length * p.x_stride;
  step.weight = p.weight;
  step.bias = p.bias;
  step.state = state_in_place(context, scratch, p.initial_state, p.final_state, p.batch * p.channels * p.taps);
  step.batch = p.batch;
  step.channels = p.channels;
  step.taps = p.taps;
  step.has_silu = p.has_silu;
  walk_columns(p.length, step, {{&Step::x, p.x, p.x_stride}},
               {{&Step::y, ColumnOutput(scratch, p.y, p.batch, p.length, p.channels, "causal_conv1d column")}},
               context.stream(), [&](const Step& at, int64_t) { causal_conv1d_update(at, context.stream()); });
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
  auto step = step_of<Step>(p);
  step.z_stride = p.length * p.z_stride;
  step.state = state_in_place(context, scratch, p.initial_state, p.final_state, p.batch * p.channels * p.states);
  step.channels = p.channels;
  step.groups = p.groups;
  step.b_group_stride = p.b_group_stride;
  step.c_group_stride = p.c_group_stride;
  walk_columns(p.length, step,
               {{&Step::x, p.x, p.x_stride},
                {&Step::dt, p.dt, p.dt_stride},
                {&Step::b, p.b, p.b_stride},
                {&Step::c, p.c, p.c_stride},
                {&Step::z, p.z, p.z_stride}},
               {{&Step::y, columns(p.y, "selective_scan column")},
                {&Step::dt_out, columns(p.dt_out, "selective_scan dt column")},
                {&Step::ungated, columns(p.ungated, "selective_scan ungated column")}},
               context.stream(), [&](const Step& at, int64_t) { selective_scan_update(at, context.stream()); });
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
  auto step = step_of<Step>(p);
  step.state = state_in_place(context, scratch, p.initial_state, p.final_state, p.batch * p.heads * p.width * p.states);
  step.heads = p.heads;
  step.width = p.width;
  step.groups = p.groups;
  step.dt_min = p.dt_min;
  step.dt_max = p.dt_max;
  walk_columns(p.length, step,
               {{&Step::x, p.x, p.x_stride},
                {&Step::dt, p.dt, p.dt_stride},
                {&Step::b, p.b, p.b_stride},
                {&Step::c, p.c, p.c_stride}},
               {{&Step::y, columns(p.y, p.heads * p.width, "ssd column")},
                {&Step::dt_out, columns(p.dt_out, p.heads, "ssd dt column")}},
               context.stream(), [&](const Step& at, int64_t) { ssd_update(at, context.stream()); });
  context.record(ssd_update_id(step));
}

}  // namespace assay::fast
