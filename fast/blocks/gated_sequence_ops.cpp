#include "fast/blocks/gated_sequence_ops.hpp"

#include "fast/blocks/update_columns.hpp"

namespace assay::fast {

void run_gated_delta_rule(Context& context, Arena& scratch, GatedDeltaRuleParams<float> p, SequenceForm form) {
  if (form == SequenceForm::kSequence) {
    p.workspace = scratch.allocate(static_cast<int64_t>(gated_delta_rule_workspace_bytes(p)), "delta rule workspace");
    gated_delta_rule_chunked(p, context.stream());
    context.record(gated_delta_rule_chunked_id(p));
    return;
  }
  const auto columns = [&](float* tensor, int64_t width, const char* label) {
    return ColumnOutput(scratch, tensor, p.batch, p.length, width, label);
  };
  const ColumnOutput o = columns(p.o, p.value_heads * p.value_dim, "delta rule column");
  const ColumnOutput g_out = columns(p.g_out, p.value_heads, "delta rule g column");
  const ColumnOutput beta_out = columns(p.beta_out, p.value_heads, "delta rule beta column");
  GatedDeltaRuleUpdateParams<float> step;
  step.q_stride = p.length * p.q_stride;
  step.k_stride = p.length * p.k_stride;
  step.v_stride = p.length * p.v_stride;
  step.g_stride = p.length * p.g_stride;
  step.a = p.a;
  step.dt_bias = p.dt_bias;
  step.beta_stride = p.length * p.beta_stride;
  step.has_sigmoid = p.has_sigmoid;
  step.has_l2norm = p.has_l2norm;
  step.epsilon = p.epsilon;
  step.state = state_in_place(context, scratch, p.initial_state, p.final_state,
                              p.batch * p.value_heads * p.key_dim * p.value_dim);
  step.batch = p.batch;
  step.key_heads = p.key_heads;
  step.value_heads = p.value_heads;
  step.key_dim = p.key_dim;
  step.value_dim = p.value_dim;
  for (int64_t t = 0; t < p.length; ++t) {
    step.q = column(p.q, p.q_stride, t);
    step.k = column(p.k, p.k_stride, t);
    step.v = column(p.v, p.v_stride, t);
    step.g = column(p.g, p.g_stride, t);
    step.beta = column(p.beta, p.beta_stride, t);
    step.o = o.at(t);
    step.g_out = g_out.at(t);
    step.beta_out = beta_out.at(t);
    gated_delta_rule_update(step, context.stream());
    o.store(t, context.stream());
    g_out.store(t, context.stream());
    beta_out.store(t, context.stream());
  }
  context.record(gated_delta_rule_update_id(step));
}

void run_short_conv(Context& context, Arena& scratch, ShortConvParams<float> p, SequenceForm form) {
  if (form == SequenceForm::kSequence) {
    short_conv(p, context.stream());
    context.record(short_conv_id(p));
    return;
  }
  const ColumnOutput y(scratch, p.y, p.batch, p.length, p.channels, "short_conv column");
  const ColumnOutput conv_out(scratch, p.conv_out, p.batch, p.length, p.channels, "short_conv sum column");
  ShortConvUpdateParams<float> step;
  step.stride = p.length * p.stride;
  step.weight = p.weight;
  step.bias = p.bias;
  step.state = state_in_place(context, scratch, p.initial_state, p.final_state, p.batch * p.channels * p.taps);
  step.mask_stride = p.mask_stride;
  step.batch = p.batch;
  step.channels = p.channels;
  step.taps = p.taps;
  for (int64_t t = 0; t < p.length; ++t) {
    step.gate_in = column(p.gate_in, p.stride, t);
    step.gate_out = column(p.gate_out, p.stride, t);
    step.x = column(p.x, p.stride, t);
    step.mask = p.mask == nullptr ? nullptr : p.mask + t;
    step.y = y.at(t);
    step.conv_out = conv_out.at(t);
    short_conv_update(step, context.stream());
    y.store(t, context.stream());
    conv_out.store(t, context.stream());
  }
  context.record(short_conv_update_id(step));
}

}  // namespace assay::fast
