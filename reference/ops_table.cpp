#include "reference/ops_table.hpp"

#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cases/spec/error.hpp"
#include "reference/attention_op_entries.hpp"
#include "reference/expert_op_entries.hpp"
#include "reference/forms.hpp"
#include "reference/gated_op_entries.hpp"
#include "reference/op_inputs.hpp"
#include "reference/ops/causal_conv1d.hpp"
#include "reference/ops/dt.hpp"
#include "reference/ops/embedding.hpp"
#include "reference/ops/gate.hpp"
#include "reference/ops/gated_rms_norm.hpp"
#include "reference/ops/linear.hpp"
#include "reference/ops/rms_norm.hpp"
#include "reference/ops/selective_scan.hpp"
#include "reference/ops/ssd.hpp"
#include "reference/row_op_entries.hpp"
#include "reference/tensor.hpp"

namespace assay::reference {

namespace {

using Outputs = NamedOutputs;

Outputs run_embedding(OpInputs& in, const std::string&) {
  const at::Tensor ids = in.ids("ids", "BL"), weight = in.tensor("weight", "VH");
  in.finish();
  if (ids.min().item<int64_t>() < 0 || ids.max().item<int64_t>() >= in.size('V'))
    throw InputError("op embedding, ids", "leave the table of " + std::to_string(in.size('V')) + " rows");
  return {{"y", reference::embedding(ids, weight)}};
}

Outputs run_linear(OpInputs& in, const std::string&) {
  const at::Tensor x = in.tensor("x", "TI"), weight = in.tensor("weight", "OI"), bias = in.find("bias", "O");
  in.finish();
  return {{"y", reference::linear(x, weight, bias)}};
}

Outputs run_rms_norm(OpInputs& in, const std::string&) {
  const at::Tensor x = in.tensor("x", "TH"), weight = in.tensor("weight", "H"), residual = in.find("residual", "TH");
  const double epsilon = in.attribute("epsilon", 1e-5);
  const at::Tensor factor = in.attribute("zero_centred", 0) != 0 ? weight + 1 : weight;
  in.finish();
  if (!residual.defined()) return {{"y", reference::rms_norm(x, factor, epsilon)}};
  const at::Tensor sum = x + residual;
  return {{"y", reference::rms_norm(sum, factor, epsilon)}, {"sum", sum}};
}

Outputs run_gated_rms_norm(OpInputs& in, const std::string&) {
  const at::Tensor x = in.tensor("x", "TI"), z = in.tensor("z", "TI"), weight = in.tensor("weight", "I");
  const int64_t groups = in.count_attribute("groups", 1);
  const double epsilon = in.attribute("epsilon", 1e-5);
  in.finish();
  if (in.size('I') % groups != 0)
    throw InputError("op gated_rms_norm, groups",
                     std::to_string(groups) + " groups do not divide " + std::to_string(in.size('I')) + " channels");
  return {{"y", reference::gated_rms_norm(x, z, weight, groups, epsilon)}};
}

Outputs run_causal_conv1d(OpInputs& in, const std::string& form) {
  const at::Tensor x = in.tensor("x", "BLC"), weight = in.tensor("weight", "CK"), bias = in.find("bias", "C");
  const at::Tensor initial_state = in.find("initial_state", "BCK"), mask = in.find_mask("mask", "BL", x);
  const bool has_silu = in.attribute("silu", 1) != 0;
  in.finish();
  const CausalConv1d result =
      (form == "update" ? causal_conv1d_update : causal_conv1d)(x, weight, bias, initial_state, mask, has_silu);
  return {{"y", result.y}, {"final_state", result.final_state}};
}

Outputs run_selective_scan(OpInputs& in, const std::string&) {
  const at::Tensor x = in.tensor("x", "BLI"), raw = in.tensor("dt", "BLI"), A = in.tensor("A", "IN");
  const at::Tensor B = in.tensor("B", "BLGN"), C = in.tensor("C", "BLGN"), D = in.tensor("D", "I");
  const at::Tensor dt_bias = in.find("dt_bias", "I"), z = in.find("z", "BLI");
  const at::Tensor initial_state = in.find("initial_state", "BIN");
  in.finish();
  const int64_t groups = in.size('G'), width = in.size('I') / groups;
  if (in.size('I') % groups != 0)
    throw InputError("op selective_scan, B",
                     std::to_string(groups) + " groups do not divide " + std::to_string(in.size('I')) + " channels");
  const at::Tensor step = dt_bias.defined() ? reference::dt(raw, dt_bias) : raw;
  std::vector<at::Tensor> ys, states;
  for (int64_t group = 0; group < groups; ++group) {
    const auto own = [&](const at::Tensor& tensor, int64_t dimension) {
      return tensor.defined() ? tensor.narrow(dimension, group * width, width) : tensor;
    };
    const SelectiveScan scan = reference::selective_scan(own(x, 2), own(step, 2), own(A, 0), B.select(2, group),
                                                         C.select(2, group), own(D, 0), own(initial_state, 1));
    ys.push_back(scan.y);
    states.push_back(scan.final_state);
  }
  const at::Tensor y = at::cat(ys, 2);
  return {{"y", z.defined() ? reference::gate(y, z) : y}, {"final_state", at::cat(states, 1)}};
}

Outputs run_ssd(OpInputs& in, const std::string& form) {
  const at::Tensor x = in.tensor("x", "BLHP"), raw = in.tensor("dt", "BLH"), A = in.tensor("A", "H");
  const at::Tensor B = in.tensor("B", "BLGN"), C = in.tensor("C", "BLGN"), D = in.tensor("D", "H");
  const at::Tensor dt_bias = in.find("dt_bias", "H"), initial_state = in.find("initial_state", "BHPN");
  const int64_t chunk_size = in.count_attribute("chunk_size", 256);
  const double dt_min = in.attribute("dt_min", 0);
  const double dt_max = in.attribute("dt_max", std::numeric_limits<double>::infinity());
  in.finish();
  if (in.size('H') % in.size('G') != 0)
    throw InputError("op ssd, B",
                     std::to_string(in.size('G')) + " groups do not divide " + std::to_string(in.size('H')) + " heads");
  const at::Tensor step = dt_bias.defined() ? reference::dt(raw, dt_bias, dt_min, dt_max) : raw;
  const Ssd result = form == "chunked" ? reference::ssd_chunked(x, step, A, B, C, D, chunk_size, initial_state)
                                       : reference::ssd_recurrent(x, step, A, B, C, D, initial_state);
  return {{"y", result.y}, {"final_state", result.final_state}};
}

struct OpEntry {
  const char* op;
  Outputs (*run)(OpInputs& in, const std::string& form);
};

constexpr OpEntry kOps[] = {
    {"embedding", run_embedding},
    {"linear", run_linear},
    {"rms_norm", run_rms_norm},
    {"gated_rms_norm", run_gated_rms_norm},
    {"causal_conv1d", run_causal_conv1d},
    {"selective_scan", run_selective_scan},
    {"ssd", run_ssd},
    {"gated_delta_rule", run_gated_delta_rule},
    {"short_conv", run_short_conv},
    {"rms_norm_gated", run_rms_norm_gated},
    {"head_rms_norm", run_head_rms_norm},
    {"l2norm", run_l2norm},
    {"rotary", run_rotary},
    {"attention", run_attention},
    {"kv_append", run_kv_append},
    {"gate", run_gate},
    {"router", run_router},
    {"experts", run_experts},
    {"feed_forward", run_feed_forward},
    {"scaled_add", run_scaled_add},
    {"shared_gate", run_shared_gate},
    {"argmax", run_argmax},
    {"gather_rows", run_gather_rows},
    {"gather_columns", run_gather_columns},
    {"top_log_probs", run_top_log_probs},
    {"mask_rows", run_mask_rows},
    {"residual_add", run_residual_add},
    {"silu_gate", run_silu_gate},
};

}  // namespace

OpResult run_reference_op(const OpCall& call) {
  std::string known;
  for (const OpEntry& entry : kOps) {
    known += (known.empty() ? "" : ", ") + std::string(entry.op);
    if (entry.op != call.op) continue;
    // Refuses an unknown form; an op without forms to choose from takes only the default.
    const bool has_forms = known_forms().contains(call.op);
    std::map<std::string, std::string> chosen;
    if (!call.form.empty()) chosen[call.op] = call.form;
    const Forms forms(chosen);
    OpInputs inputs(call);
    OpResult result;
    for (const auto& [name, value] : entry.run(inputs, has_forms ? forms.of(call.op) : std::string()))
      result.outputs.push_back({name, to_host(value)});
    return result;
  }
  throw UnsupportedError("op " + call.op, "the reference does not have this op", "it has: " + known);
}

}  // namespace assay::reference
