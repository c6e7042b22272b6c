#include "reference/gated_op_entries.hpp"

#include <cmath>

#include "cases/spec/error.hpp"
#include "reference/ops/causal_conv1d.hpp"
#include "reference/ops/dt.hpp"
#include "reference/ops/gated_delta_rule.hpp"
#include "reference/ops/gated_rms_norm.hpp"
#include "reference/ops/l2norm.hpp"
#include "reference/ops/rms_norm.hpp"

namespace assay::reference {

namespace {

// One of the slices [T, Nh, D] of rows x [T, S, Nh, D].
at::Tensor slice_of(const at::Tensor& x, OpInputs& in, const std::string& op) {
  const double slice = in.attribute("slice", 0);
  if (!(slice >= 0 && slice < static_cast<double>(x.size(1))) || slice != std::floor(slice))
    throw InputError("op " + op + ", slice",
                     std::to_string(slice) + " is none of the " + std::to_string(x.size(1)) + " slices");
  return x.select(1, static_cast<int64_t>(slice));
}

}  // namespace

NamedOutputs run_gated_delta_rule(OpInputs& in, const std::string& form) {
  at::Tensor q = in.tensor("q", "BLGK"), k = in.tensor("k", "BLGK"), g = in.tensor("g", "BLH");
  at::Tensor beta = in.tensor("beta", "BLH");
  const at::Tensor v = in.tensor("v", "BLHV"), A = in.find("A", "H"), dt_bias = in.find("dt_bias", "H");
  const at::Tensor initial_state = in.find("initial_state", "BHKV");
  const bool has_l2norm = in.attribute("l2norm", 1) != 0, has_sigmoid = in.attribute("sigmoid", 0) != 0;
  const double epsilon = in.attribute("epsilon", 1e-6);
  in.finish();
  if (in.size('H') % in.size('G') != 0)
    throw InputError("op gated_delta_rule, v",
                     std::to_string(in.size('G')) + " key heads do not divide " + std::to_string(in.size('H')));
  if (A.defined() != dt_bias.defined())
    throw InputError("op gated_delta_rule, dt_bias", "is given without A, or A without it");
  if (has_l2norm) {
    q = reference::l2norm(q, epsilon) / std::sqrt(static_cast<double>(q.size(3)));
    k = reference::l2norm(k, epsilon);
  }
  if (A.defined()) g = A * reference::dt(g, dt_bias);
  if (has_sigmoid) beta = at::sigmoid(beta);
  const GatedDeltaRule result = form == "chunked" ? gated_delta_rule_chunked(q, k, v, g, beta, initial_state)
                                                  : gated_delta_rule_recurrent(q, k, v, g, beta, initial_state);
  return {{"o", result.o}, {"final_state", result.final_state}};
}

NamedOutputs run_short_conv(OpInputs& in, const std::string&) {
  const at::Tensor bcx = in.tensor("bcx", "BLSC"), weight = in.tensor("weight", "CK"), bias = in.find("bias", "C");
  const at::Tensor initial_state = in.find("initial_state", "BCK"), mask = in.find_mask("mask", "BL", bcx);
  in.finish();
  if (in.size('S') != 3)
    throw InputError("op short_conv, bcx", "has " + std::to_string(in.size('S')) + " parts, not 3");
  at::Tensor u = bcx.select(2, 0) * bcx.select(2, 2);
  if (mask.defined()) u = u * mask.unsqueeze(-1);
  const CausalConv1d conv = causal_conv1d(u, weight, bias, initial_state, mask, /*has_silu=*/false);
  return {{"y", bcx.select(2, 1) * conv.y}, {"final_state", conv.final_state}};
}

NamedOutputs run_rms_norm_gated(OpInputs& in, const std::string&) {
  const at::Tensor x = in.tensor("x", "TGD"), z = in.tensor("z", "TGD");
  const at::Tensor weight = in.find("weight", "GD"), shared = in.find("shared_weight", "D");
  const double epsilon = in.attribute("epsilon", 1e-5);
  in.finish();
  if (weight.defined() == shared.defined())
    throw InputError("op rms_norm_gated, weight", "exactly one of weight and shared_weight must be given");
  if (shared.defined()) return {{"y", reference::rms_norm_gated(x, z, shared, /*groups=*/1, epsilon)}};
  const at::Tensor y = reference::rms_norm_gated(x.flatten(1), z.flatten(1), weight.flatten(), x.size(1), epsilon);
  return {{"y", y.view(x.sizes())}};
}

NamedOutputs run_head_rms_norm(OpInputs& in, const std::string&) {
  const at::Tensor x = slice_of(in.tensor("x", "TSHD"), in, "head_rms_norm"), given = in.find("weight", "D");
  const bool is_zero_centred = in.attribute("zero_centred", 0) != 0;
  const double epsilon = in.attribute("epsilon", 1e-5);
  in.finish();
  at::Tensor weight = given.defined() ? given : at::ones({x.size(2)}, x.options());
  if (given.defined() && is_zero_centred) weight = weight + 1;
  return {{"y", reference::rms_norm(x, weight, epsilon)}};
}

NamedOutputs run_l2norm(OpInputs& in, const std::string&) {
  const at::Tensor x = slice_of(in.tensor("x", "TSHD"), in, "l2norm");
  const double epsilon = in.attribute("epsilon", 1e-6), scale = in.attribute("scale", 1);
  in.finish();
  return {{"y", reference::l2norm(x, epsilon) * scale}};
}

}  // namespace assay::reference
