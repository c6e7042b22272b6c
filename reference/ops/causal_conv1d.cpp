#include "reference/ops/causal_conv1d.hpp"

#include <vector>

#include "reference/ops/activations.hpp"

namespace assay::reference {

namespace {

at::Tensor state_or_zeros(const at::Tensor& initial_state, const at::Tensor& x, const at::Tensor& weight) {
  return initial_state.defined() ? initial_state : at::zeros({x.size(0), x.size(2), weight.size(1)}, x.options());
}

at::Tensor finished(at::Tensor y, const at::Tensor& bias, const at::Tensor& mask, bool has_silu) {
  if (bias.defined()) y = y + bias;
  if (has_silu) y = reference::silu(y);
  // A conv bias makes act(bias) non-zero at padding, which would feed the state of a scan.
  if (mask.defined()) y = y * mask.unsqueeze(-1);
  return y;
}

}  // namespace

CausalConv1d causal_conv1d(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                           const at::Tensor& initial_state, const at::Tensor& mask, bool has_silu) {
  const int64_t length = x.size(1), taps = weight.size(1);
  // Column K + t of `inputs` is x[t], so x[t-K+1+j] is column t + 1 + j.
  const at::Tensor past = state_or_zeros(initial_state, x, weight).transpose(1, 2);
  const at::Tensor inputs = at::cat({past, x}, 1);

  at::Tensor y = at::zeros_like(x);
  for (int64_t j = 0; j < taps; ++j) y = y + weight.select(1, j) * inputs.narrow(1, 1 + j, length);

  const at::Tensor final_state = inputs.narrow(1, length, taps).transpose(1, 2).contiguous();
  return {finished(y, bias, mask, has_silu), final_state};
}

CausalConv1d causal_conv1d_update(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                                  const at::Tensor& initial_state, const at::Tensor& mask, bool has_silu) {
  const int64_t length = x.size(1), taps = weight.size(1);
  at::Tensor window = state_or_zeros(initial_state, x, weight);
  std::vector<at::Tensor> y;
  for (int64_t t = 0; t < length; ++t) {
    window = at::cat({window.narrow(2, 1, taps - 1), x.select(1, t).unsqueeze(2)}, 2);
    y.push_back((window * weight).sum(2));
  }
  return {finished(at::stack(y, 1), bias, mask, has_silu), window};
}

}  // namespace assay::reference
