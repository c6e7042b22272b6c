#include "fast/ops/prepare_gated.hpp"

#include <cmath>

#include "fast/blocks/gated_sequence_ops.hpp"
#include "fast/kernels/gated_rms_norm.hpp"
#include "fast/kernels/head_norm.hpp"

namespace assay::fast {

namespace {

// p reads the slice that the call asks for of its rows x [T, S, Nh, D]; no other slice counts as moved.
template <class Params>
void take_slice(Preparation& prepare, Params& p) {
  OpInputs& in = prepare.in;
  const int64_t slices = in.size('S');
  const double slice = in.attribute("slice", 0);
  if (!(slice >= 0 && slice < static_cast<double>(slices)) || slice != std::floor(slice))
    in.refuse("slice", std::to_string(slice) + " is none of the " + std::to_string(slices) + " slices");
  p.rows = in.size('T');
  p.heads = in.size('H');
  p.width = in.size('D');
  p.y_stride = p.heads * p.width;
  p.x_stride = slices * p.y_stride;
  p.x += static_cast<int64_t>(slice) * p.y_stride;
  p.y = prepare.output("y", {p.rows, p.heads, p.width});
  prepare.op.bytes -= 4.0 * static_cast<double>(p.rows * (slices - 1) * p.y_stride);
}

}  // namespace

void prepare_gated_delta_rule(Preparation& prepare) {
  OpInputs& in = prepare.in;
  GatedDeltaRuleParams<float> p;
  p.q = in.required("q", "BLGK");
  p.k = in.required("k", "BLGK");
  p.v = in.required("v", "BLHV");
  p.g = in.required("g", "BLH");
  p.beta = in.required("beta", "BLH");
  p.a = in.optional("A", "H");
  p.dt_bias = in.optional("dt_bias", "H");
  const float* initial = in.optional("initial_state", "BHKV");
  p.has_l2norm = in.attribute("l2norm", 1) != 0;
  p.has_sigmoid = in.attribute("sigmoid", 0) != 0;
  p.epsilon = static_cast<float>(in.attribute("epsilon", 1e-6));
  in.finish();
  p.batch = in.size('B');
  p.length = in.size('L');
  p.key_heads = in.size('G');
  p.value_heads = p.g_stride = p.beta_stride = in.size('H');
  p.key_dim = in.size('K');
  p.value_dim = in.size('V');
  p.q_stride = p.k_stride = p.key_heads * p.key_dim;
  p.v_stride = p.value_heads * p.value_dim;
  p.o = prepare.output("o", {p.batch, p.length, p.value_heads, p.value_dim});
  p.final_state = prepare.output("final_state", {p.batch, p.value_heads, p.key_dim, p.value_dim});
  p.initial_state = prepare.start_of(initial, p.final_state);
  if (prepare.form == SequenceForm::kSequence) {
    constexpr double kChunk = kDeltaRuleChunk;
    const double key = static_cast<double>(p.key_dim), value = static_cast<double>(p.value_dim);
    prepare.op.flops = static_cast<double>(p.batch * p.length * p.value_heads) *
                       (6 * key * value + 2 * kChunk * (key + value) + 2 * kChunk * kChunk / 3);
  }
  prepare.launch_sequence(p, run_gated_delta_rule);
}

void prepare_short_conv(Preparation& prepare) {
  OpInputs& in = prepare.in;
  ShortConvParams<float> p;
  p.gate_in = in.required("bcx", "BLSC");
  p.weight = in.required("weight", "CK");
  p.bias = in.optional("bias", "C");
  const float* initial = in.optional("initial_state", "BCK");
  p.mask = in.optional_mask("mask", "BL");
  in.finish();
  if (in.size('S') != 3) in.refuse("bcx", "has " + std::to_string(in.size('S')) + " parts, not 3");
  p.batch = in.size('B');
  p.length = p.mask_stride = in.size('L');
  p.channels = in.size('C');
  p.taps = in.size('K');
  p.stride = 3 * p.channels;
  p.gate_out = p.gate_in + p.channels;
  p.x = p.gate_out + p.channels;
  p.y = prepare.output("y", {p.batch, p.length, p.channels});
  p.final_state = prepare.output("final_state", {p.batch, p.channels, p.taps});
  p.initial_state = prepare.start_of(initial, p.final_state);
  prepare.launch_sequence(p, run_short_conv);
}

void prepare_rms_norm_gated(Preparation& prepare) {
  OpInputs& in = prepare.in;
  GatedRmsNormParams<float> p;
  p.x = in.required("x", "TGD");
  p.z = in.required("z", "TGD");
  const float* weight = in.optional("weight", "GD");
  const float* shared = in.optional("shared_weight", "D");
  p.epsilon = static_cast<float>(in.attribute("epsilon", 1e-5));
  in.finish();
  if ((weight == nullptr) == (shared == nullptr))
    in.refuse("weight", "exactly one of weight and shared_weight must be given");
  p.weight = weight != nullptr ? weight : shared;
  p.is_weight_shared = shared != nullptr;
  p.rows = in.size('T');
  p.groups = in.size('G');
  p.width = p.z_stride = p.groups * in.size('D');
  p.y = prepare.output("y", {p.rows, p.groups, in.size('D')});
  prepare.launch(p, rms_norm_gated<float>, rms_norm_gated_id<float>);
}

void prepare_head_rms_norm(Preparation& prepare) {
  OpInputs& in = prepare.in;
  HeadRmsNormParams<float> p;
  p.x = in.required("x", "TSHD");
  p.weight = in.optional("weight", "D");
  take_slice(prepare, p);
  p.epsilon = static_cast<float>(in.attribute("epsilon", 1e-5));
  p.is_zero_centred = in.attribute("zero_centred", 0) != 0;
  in.finish();
  prepare.launch(p, head_rms_norm<float>, head_rms_norm_id<float>);
}

void prepare_l2norm(Preparation& prepare) {
  OpInputs& in = prepare.in;
  L2NormParams<float> p;
  p.x = in.required("x", "TSHD");
  take_slice(prepare, p);
  p.epsilon = static_cast<float>(in.attribute("epsilon", 1e-6));
  p.scale = static_cast<float>(in.attribute("scale", 1));
  in.finish();
  prepare.launch(p, l2norm<float>, l2norm_id<float>);
}

}  // namespace assay::fast
