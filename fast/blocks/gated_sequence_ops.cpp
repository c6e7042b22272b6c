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
  using Step = GatedDeltaRuleUpdateParams<float>;
  const auto columns = [&](float* tensor, int64_t width, const char* label) {
    return ColumnOutput(scratch, tensor, p.batch, p.length, width, label);
  };
  Step step{p, nullptr};
  for (int64_t* stride : {&step.q_stride, &step.k_stride, &step.v_stride, &step.g_stride, &step.beta_stride}) {
    *stride *= p.length;
  }
  step.state = state_in_place(context, scratch, p.initial_state, p.final_state,
                              p.batch * p.value_heads * p.key_dim * p.value_dim);
  walk_columns(p.length, step,
               {{&Step::q, p.q, p.q_stride},
                {&Step::k, p.k, p.k_stride},
                {&Step::v, p.v, p.v_stride},
                {&Step::g, p.g, p.g_stride},
                {&Step::beta, p.beta, p.beta_stride}},
               {{&Step::o, columns(p.o, p.value_heads * p.value_dim, "delta rule column")},
                {&Step::g_out, columns(p.g_out, p.value_heads, "delta rule g column")},
                {&Step::beta_out, columns(p.beta_out, p.value_heads, "delta rule beta column")}},
               context.stream(), [&](const Step& at, int64_t) { gated_delta_rule_update(at, context.stream()); });
  context.record(gated_delta_rule_update_id(step));
}

void run_short_conv(Context& context, Arena& scratch, ShortConvParams<float> p, SequenceForm form) {
  if (form == SequenceForm::kSequence) {
    short_conv(p, context.stream());
    context.record(short_conv_id(p));
    return;
  }
  using Step = ShortConvUpdateParams<float>;
  const auto columns = [&](float* tensor, const char* label) {
    return ColumnOutput(scratch, tensor, p.batch, p.length, p.channels, label);
  };
  Step step;
  step.stride = p.length * p.stride;
  step.weight = p.weight;
  step.bias = p.bias;
  step.state = state_in_place(context, scratch, p.initial_state, p.final_state, p.batch * p.channels * p.taps);
  step.mask_stride = p.mask_stride;
  step.batch = p.batch;
  step.channels = p.channels;
  step.taps = p.taps;
  walk_columns(
      p.length, step,
      {{&Step::gate_in, p.gate_in, p.stride}, {&Step::gate_out, p.gate_out, p.stride}, {&Step::x, p.x, p.stride}},
      {{&Step::y, columns(p.y, "short_conv column")}, {&Step::conv_out, columns(p.conv_out, "short_conv sum column")}},
      context.stream(), [&](Step& at, int64_t t) {
        at.mask = p.mask == nullptr ? nullptr : p.mask + t;
        short_conv_update(at, context.stream());
      });
  context.record(short_conv_update_id(step));
}

}  // namespace assay::fast
