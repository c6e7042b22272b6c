#include "reference/blocks/convolve.hpp"

#include "reference/ops/causal_conv1d.hpp"

namespace assay::reference {

at::Tensor convolve(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, LayerState& state,
                    const Pass& pass, bool has_silu) {
  const bool is_update = pass.forms.of("causal_conv1d") == "update";
  const auto conv = is_update ? reference::causal_conv1d_update : reference::causal_conv1d;
  const CausalConv1d result = conv(pass.masked(x), weight.squeeze(1), bias, state.conv, pass.mask, has_silu);
  state.conv = result.final_state;
  return result.y;
}

}  // namespace assay::reference
