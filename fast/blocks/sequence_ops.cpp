#include "fast/blocks/sequence_ops.hpp"

#include <cuda_runtime_api.h>

#include <string>

#include "fast/device/check.hpp"
#include "fast/device/tensor.hpp"
#include "fast/kernels/elementwise.hpp"

namespace assay::fast {

namespace {

// Column t of a [B, L, width] tensor as the update kernels want it: [B, width] dense. Where the tensor's own memory is
// not that already, the kernel writes to a column of scratch that is copied into place.
class ColumnOutput {
 public:
  ColumnOutput(Arena& scratch, float* tensor, int64_t batch, int64_t length, int64_t width, const std::string& label)
      : tensor_(tensor), batch_(batch), length_(length), width_(width) {
    if (tensor != nullptr && batch > 1 && length > 1) column_ = allocate<float>(scratch, {batch, width}, label).data;
  }
  float* at(int64_t t) const {
    if (tensor_ == nullptr) return nullptr;
    return column_ != nullptr ? column_ : tensor_ + t * width_;
  }
  void store(int64_t t, cudaStream_t stream) const {
    if (column_ == nullptr) return;
    const size_t bytes = static_cast<size_t>(width_) * sizeof(float);
    check(cudaMemcpy2DAsync(tensor_ + t * width_, bytes * static_cast<size_t>(length_), column_, bytes, bytes,
                            static_cast<size_t>(batch_), cudaMemcpyDeviceToDevice, stream),
          "copy of a column");
  }

 private:
  float* tensor_;
  float* column_ = nullptr;
  int64_t batch_, length_, width_;
};

// The state that update kernels change in place, holding initial, or zeros where that is null.
float* state_in_place(Context& context, Arena& scratch, const float* initial, float* final_state, int64_t count) {
  float* state = final_state != nullptr ? final_state : allocate<float>(scratch, {count}, "update state").data;
  const size_t bytes = static_cast<size_t>(count) * sizeof(float);
  if (initial == nullptr)
    check(cudaMemsetAsync(state, 0, bytes, context.stream()), "zeroing of an initial state");
  else if (initial != state)
    check(cudaMemcpyAsync(state, initial, bytes, cudaMemcpyDeviceToDevice, context.stream()),
          "copy of an initial state");
  return state;
}

const float* column(const float* tensor, int64_t stride, int64_t t) {
  return tensor == nullptr ? nullptr : tensor + t * stride;
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
  const ColumnOutput y(scratch, p.y, p.batch, p.length, p.channels, "selective_scan column");
  const ColumnOutput dt_out(scratch, p.dt_out, p.batch, p.length, p.channels, "selective_scan dt column");
  const ColumnOutput ungated(scratch, p.ungated, p.batch, p.length, p.channels, "selective_scan ungated column");
  SelectiveScanUpdateParams<float> step;
  step.x_stride = p.length * p.x_stride;
  step.dt_stride = p.length * p.dt_stride;
  step.dt_bias = p.dt_bias;
  step.a = p.a;
  step.b_stride = p.length * p.b_stride;
  step.c_stride = p.length * p.c_stride;
  step.skip = p.skip;
  step.z_stride = p.length * p.z_stride;
  step.state = state_in_place(context, scratch, p.initial_state, p.final_state, p.batch * p.channels * p.states);
  step.batch = p.batch;
  step.channels = p.channels;
  step.states = p.states;
  for (int64_t t = 0; t < p.length; ++t) {
    step.x = column(p.x, p.x_stride, t);
    step.dt = column(p.dt, p.dt_stride, t);
    step.b = column(p.b, p.b_stride, t);
    step.c = column(p.c, p.c_stride, t);
    step.z = column(p.z, p.z_stride, t);
    step.y = y.at(t);
    step.dt_out = dt_out.at(t);
    step.ungated = ungated.at(t);
    selective_scan_update(step, context.stream());
    y.store(t, context.stream());
    dt_out.store(t, context.stream());
    ungated.store(t, context.stream());
  }
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
  const ColumnOutput y(scratch, p.y, p.batch, p.length, p.heads * p.width, "ssd column");
  const ColumnOutput dt_out(scratch, p.dt_out, p.batch, p.length, p.heads, "ssd dt column");
  SsdUpdateParams<float> step;
  step.x_stride = p.length * p.x_stride;
  step.dt_stride = p.length * p.dt_stride;
  step.dt_bias = p.dt_bias;
  step.a = p.a;
  step.b_stride = p.length * p.b_stride;
  step.c_stride = p.length * p.c_stride;
  step.skip = p.skip;
  step.state = state_in_place(context, scratch, p.initial_state, p.final_state, p.batch * p.heads * p.width * p.states);
  step.batch = p.batch;
  step.heads = p.heads;
  step.width = p.width;
  step.states = p.states;
  step.groups = p.groups;
  step.dt_min = p.dt_min;
  step.dt_max = p.dt_max;
  for (int64_t t = 0; t < p.length; ++t) {
    step.x = column(p.x, p.x_stride, t);
    step.dt = column(p.dt, p.dt_stride, t);
    step.b = column(p.b, p.b_stride, t);
    step.c = column(p.c, p.c_stride, t);
    step.y = y.at(t);
    step.dt_out = dt_out.at(t);
    ssd_update(step, context.stream());
    y.store(t, context.stream());
    dt_out.store(t, context.stream());
  }
  context.record(ssd_update_id(step));
}

}  // namespace assay::fast
