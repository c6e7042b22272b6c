#include "reference/expert_op_entries.hpp"

#include "cases/spec/error.hpp"
#include "cases/spec/op_attributes.hpp"
#include "reference/ops/activations.hpp"
#include "reference/ops/linear.hpp"
#include "reference/ops/router.hpp"

namespace assay::reference {

NamedOutputs run_router(OpInputs& in, const std::string&) {
  const at::Tensor logits = in.tensor("logits", "TE"), bias = in.find("bias", "E");
  const ExpertsShape shape = router_attributes(in, in.size('E'));
  in.finish();
  const bool is_sigmoid = shape.router == ExpertsShape::Router::kSigmoid;
  if (!is_sigmoid && (bias.defined() || shape.groups > 1))
    throw InputError("op router, router", "only the sigmoid router has a bias and groups");
  return {{"routing", reference::router(logits, bias, shape)}};
}

// As reference/blocks/experts.cpp: every expert computes every token, and the weights choose.
NamedOutputs run_experts(OpInputs& in, const std::string&) {
  const at::Tensor x = in.tensor("x", "TX"), ids = in.ids("ids", "TK"), weights = in.tensor("weights", "TK");
  const at::Tensor first = in.tensor("first", "ERX"), down = in.tensor("down", "EXF");
  const auto activation = static_cast<Activation>(kind_attribute(in, "experts", "activation", 3));
  in.finish();
  const int64_t count = in.size('E'), width = in.size('F'), rows = in.size('R');
  if (rows != width && rows != 2 * width)
    throw InputError("op experts, first",
                     std::to_string(rows) + " rows, neither " + std::to_string(width) + " nor twice that");
  if (ids.min().item<int64_t>() < 0 || ids.max().item<int64_t>() >= count)
    throw InputError("op experts, ids", "leave the " + std::to_string(count) + " experts");
  at::Tensor sum = at::zeros_like(x);
  for (int64_t e = 0; e < count; ++e) {
    const at::Tensor is_chosen = ids.eq(e);
    if (!is_chosen.any().item<bool>()) continue;
    at::Tensor hidden = activate(reference::linear(x, first[e].narrow(0, 0, width)), activation);
    if (rows == 2 * width) hidden = hidden * reference::linear(x, first[e].narrow(0, width, width));
    sum = sum + (weights * is_chosen).sum(-1, /*keepdim=*/true) * reference::linear(hidden, down[e]);
  }
  return {{"y", sum}};
}

}  // namespace assay::reference
