#include "fast/ops/prepared_op.hpp"

#include <algorithm>
#include <limits>

#include "cases/spec/error.hpp"
#include "fast/blocks/sequence_ops.hpp"
#include "fast/kernels/embedding.hpp"
#include "fast/kernels/gated_rms_norm.hpp"
#include "fast/kernels/linear_gemv.hpp"
#include "fast/kernels/rms_norm.hpp"
#include "fast/models/forms.hpp"
#include "fast/ops/preparation.hpp"
#include "fast/ops/prepare_attention.hpp"
#include "fast/ops/prepare_elementwise.hpp"
#include "fast/ops/prepare_experts.hpp"
#include "fast/ops/prepare_gated.hpp"
#include "fast/ops/prepare_rows.hpp"

namespace assay::fast {

namespace {

void prepare_embedding(Preparation& prepare) {
  OpInputs& in = prepare.in;
  EmbeddingParams<float> p;
  p.ids = in.ids("ids", "BL");
  p.weight = in.required("weight", "VH");
  in.finish();
  if (in.largest_id() >= in.size('V'))
    in.refuse("ids", std::to_string(in.largest_id()) + " is outside the table of " + std::to_string(in.size('V')));
  p.y = prepare.output("y", {in.size('B'), in.size('L'), in.size('H')});
  p.tokens = in.size('B') * in.size('L');
  p.vocabulary = in.size('V');
  p.width = in.size('H');
  prepare.op.bytes -= unread_bytes(prepare.call.required("ids"), p.vocabulary, p.width);
  prepare.launch(p, embedding<float>, embedding_id<float>);
}

void prepare_linear(Preparation& prepare) {
  OpInputs& in = prepare.in;
  LinearParams p;
  p.x = in.required("x", "TI");
  p.weight = in.required("weight", "OI");
  p.bias = in.optional("bias", "O");
  in.finish();
  p.rows = in.size('T');
  p.in = p.x_stride = in.size('I');
  p.out = p.y_stride = in.size('O');
  p.y = prepare.output("y", {p.rows, p.out});
  prepare.op.flops = 2.0 * static_cast<double>(p.rows) * static_cast<double>(p.in) * static_cast<double>(p.out);
  if (prepare.call.form != "gemv") {
    prepare.op.launch = [&context = prepare.context, p] { context.linear(p); };
    return;
  }
  if (p.rows > kGemvRows)
    throw UnsupportedError("op linear",
                           "gemv takes " + std::to_string(kGemvRows) + " rows at most, not " + std::to_string(p.rows));
  LinearGemvParams<float> few;
  few.x = p.x;
  few.x_stride = p.x_stride;
  few.weight = static_cast<const float*>(p.weight);
  few.bias = p.bias;
  few.y = p.y;
  few.y_stride = p.y_stride;
  few.rows = p.rows;
  few.in = p.in;
  few.out = p.out;
  prepare.op.launch = [&context = prepare.context, few] {
    linear_gemv(few, context.stream());
    context.record(linear_gemv_id(few));
  };
}

void prepare_rms_norm(Preparation& prepare) {
  OpInputs& in = prepare.in;
  RmsNormParams<float> p;
  p.x = in.required("x", "TH");
  p.weight = in.required("weight", "H");
  p.residual = in.optional("residual", "TH");
  p.epsilon = static_cast<float>(in.attribute("epsilon", 1e-5));
  p.is_zero_centred = in.attribute("zero_centred", 0) != 0;
  in.finish();
  p.rows = in.size('T');
  p.width = in.size('H');
  p.y = prepare.output("y", {p.rows, p.width});
  if (p.residual != nullptr) p.sum = prepare.output("sum", {p.rows, p.width});
  prepare.launch(p, rms_norm<float>, rms_norm_id<float>);
}

void prepare_gated_rms_norm(Preparation& prepare) {
  OpInputs& in = prepare.in;
  GatedRmsNormParams<float> p;
  p.x = in.required("x", "TI");
  p.z = in.required("z", "TI");
  p.weight = in.required("weight", "I");
  p.groups = in.count_attribute("groups", 1);
  p.epsilon = static_cast<float>(in.attribute("epsilon", 1e-5));
  in.finish();
  p.rows = in.size('T');
  p.width = p.z_stride = in.size('I');
  p.y = prepare.output("y", {p.rows, p.width});
  prepare.launch(p, gated_rms_norm<float>, gated_rms_norm_id<float>);
}

void prepare_causal_conv1d(Preparation& prepare) {
  OpInputs& in = prepare.in;
  CausalConv1dParams<float> p;
  p.x = in.required("x", "BLC");
  p.weight = in.required("weight", "CK");
  p.bias = in.optional("bias", "C");
  const float* initial = in.optional("initial_state", "BCK");
  p.mask = in.optional_mask("mask", "BL");
  p.has_silu = in.attribute("silu", 1) != 0;
  in.finish();
  p.batch = in.size('B');
  p.length = p.mask_stride = in.size('L');
  p.channels = p.x_stride = in.size('C');
  p.taps = in.size('K');
  p.y = prepare.output("y", {p.batch, p.length, p.channels});
  p.final_state = prepare.output("final_state", {p.batch, p.channels, p.taps});
  p.initial_state = prepare.start_of(initial, p.final_state);
  prepare.launch_sequence(p, run_causal_conv1d);
}

void prepare_selective_scan(Preparation& prepare) {
  OpInputs& in = prepare.in;
  SelectiveScanParams<float> p;
  p.x = in.required("x", "BLI");
  p.dt = in.required("dt", "BLI");
  p.a = in.required("A", "IN");
  p.b = in.required("B", "BLGN");
  p.c = in.required("C", "BLGN");
  p.skip = in.required("D", "I");
  p.dt_bias = in.optional("dt_bias", "I");
  p.z = in.optional("z", "BLI");
  const float* initial = in.optional("initial_state", "BIN");
  in.finish();
  p.batch = in.size('B');
  p.length = in.size('L');
  p.channels = p.x_stride = p.dt_stride = p.z_stride = in.size('I');
  p.states = p.b_group_stride = p.c_group_stride = in.size('N');
  p.groups = in.size('G');
  p.b_stride = p.c_stride = p.groups * p.states;
  p.y = prepare.output("y", {p.batch, p.length, p.channels});
  p.final_state = prepare.output("final_state", {p.batch, p.channels, p.states});
  p.initial_state = prepare.start_of(initial, p.final_state);
  prepare.launch_sequence(p, run_selective_scan);
}

void prepare_ssd(Preparation& prepare) {
  OpInputs& in = prepare.in;
  SsdParams<float> p;
  p.x = in.required("x", "BLHP");
  p.dt = in.required("dt", "BLH");
  p.a = in.required("A", "H");
  p.b = in.required("B", "BLGN");
  p.c = in.required("C", "BLGN");
  p.skip = in.required("D", "H");
  p.dt_bias = in.optional("dt_bias", "H");
  const float* initial = in.optional("initial_state", "BHPN");
  p.chunk_size = in.count_attribute("chunk_size", 256);
  p.dt_min = static_cast<float>(in.attribute("dt_min", 0));
  p.dt_max = static_cast<float>(in.attribute("dt_max", std::numeric_limits<double>::infinity()));
  in.finish();
  p.batch = in.size('B');
  p.length = in.size('L');
  p.heads = p.dt_stride = in.size('H');
  p.width = in.size('P');
  p.groups = in.size('G');
  p.states = in.size('N');
  p.x_stride = p.heads * p.width;
  p.b_stride = p.c_stride = p.groups * p.states;
  p.y = prepare.output("y", {p.batch, p.length, p.heads, p.width});
  p.final_state = prepare.output("final_state", {p.batch, p.heads, p.width, p.states});
  p.initial_state = prepare.start_of(initial, p.final_state);
  if (prepare.form == SequenceForm::kSequence) {
    const double chunk = static_cast<double>(std::min<int64_t>(p.chunk_size, kSsdChunk));
    const double heads = static_cast<double>(p.heads), width = static_cast<double>(p.width);
    const double states = static_cast<double>(p.states), groups = static_cast<double>(p.groups);
    prepare.op.flops = static_cast<double>(p.batch * p.length) *
                       (heads * (chunk * width + 4 * width * states) + groups * chunk * states);
  }
  prepare.launch_sequence(p, run_ssd);
}

struct OpEntry {
  const char* op;
  void (*prepare)(Preparation&);
};

constexpr OpEntry kOps[] = {
    {"embedding", prepare_embedding},
    {"linear", prepare_linear},
    {"rms_norm", prepare_rms_norm},
    {"gated_rms_norm", prepare_gated_rms_norm},
    {"causal_conv1d", prepare_causal_conv1d},
    {"selective_scan", prepare_selective_scan},
    {"ssd", prepare_ssd},
    {"gated_delta_rule", prepare_gated_delta_rule},
    {"short_conv", prepare_short_conv},
    {"rms_norm_gated", prepare_rms_norm_gated},
    {"head_rms_norm", prepare_head_rms_norm},
    {"l2norm", prepare_l2norm},
    {"rotary", prepare_rotary},
    {"attention", prepare_attention},
    {"kv_append", prepare_kv_append},
    {"gate", prepare_gate},
    {"router", prepare_router},
    {"experts", prepare_experts},
    {"feed_forward", prepare_feed_forward},
    {"scaled_add", prepare_scaled_add},
    {"shared_gate", prepare_shared_gate},
    {"argmax", prepare_argmax},
    {"gather_rows", prepare_gather_rows},
    {"gather_columns", prepare_gather_columns},
    {"top_log_probs", prepare_top_log_probs},
    {"mask_rows", prepare_mask_rows},
    {"residual_add", prepare_residual_add},
    {"silu_gate", prepare_silu_gate},
};

}  // namespace

PreparedOp prepare_op(Context& context, Arena& arena, const OpCall& call) {
  std::string known;
  for (const OpEntry& entry : kOps) {
    known += (known.empty() ? "" : ", ") + std::string(entry.op);
    if (call.op != entry.op) continue;
    if (!call.form.empty()) check_forms({{call.op, call.form}});
    OpInputs in(call, arena, context.stream());
    const SequenceForm form = call.form == "update" ? SequenceForm::kUpdate : SequenceForm::kSequence;
    Preparation preparation{call, context, arena, in, form, {}};
    entry.prepare(preparation);
    preparation.op.bytes += in.input_bytes();
    return std::move(preparation.op);
  }
  throw UnsupportedError("op " + call.op, "the fast path does not have this op", "it has: " + known);
}

}  // namespace assay::fast
