#include "reference/row_op_entries.hpp"

#include "cases/spec/error.hpp"
#include "reference/ops/gate.hpp"
#include "reference/ops/top_log_probs.hpp"

namespace assay::reference {

NamedOutputs run_top_log_probs(OpInputs& in, const std::string&) {
  const at::Tensor x = in.tensor("x", "TV");
  const int64_t k = in.count_attribute("k", 1);
  in.finish();
  if (k > in.size('V'))
    throw InputError("op top_log_probs, k", std::to_string(k) + " of " + std::to_string(in.size('V')) + " logits");
  const TopLogProbs top = reference::top_log_probs(x, k);
  return {{"values", top.values}, {"ids", top.ids.to(x.scalar_type())}};
}

NamedOutputs run_mask_rows(OpInputs& in, const std::string&) {
  const at::Tensor x = in.tensor("x", "BLW"), mask = in.find_mask("mask", "BL", x);
  in.finish();
  if (!mask.defined()) throw InputError("op mask_rows, mask", "is left out");
  return {{"y", x * mask.unsqueeze(-1)}};
}

NamedOutputs run_residual_add(OpInputs& in, const std::string&) {
  const at::Tensor x = in.tensor("x", "TW"), residual = in.tensor("residual", "TW");
  in.finish();
  return {{"y", x + residual}};
}

NamedOutputs run_silu_gate(OpInputs& in, const std::string&) {
  const at::Tensor x = in.tensor("x", "TW"), z = in.tensor("z", "TW");
  in.finish();
  return {{"y", reference::gate(x, z)}};
}

}  // namespace assay::reference
