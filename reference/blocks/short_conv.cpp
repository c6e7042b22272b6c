#include "reference/blocks/short_conv.hpp"

#include "reference/blocks/convolve.hpp"
#include "reference/ops/linear.hpp"

namespace assay::reference {

at::Tensor short_conv(const at::Tensor& h, const Place& place, const ShortConvShape& shape, LayerState& state,
                      const Pass& pass) {
  const at::Tensor projected =
      pass.keep(place.probe + "in_proj",
                reference::linear(pass.masked(h), place.weight("in_proj.weight"), place.find("in_proj.bias")));
  const std::vector<at::Tensor> b_c_x = projected.split(shape.hidden_size, -1);
  const at::Tensor v =
      pass.keep(place.probe + "conv1d", convolve(pass.rounded(b_c_x[0] * b_c_x[2]), place.weight("conv.weight"),
                                                 place.find("conv.bias"), state, pass, /*has_silu=*/false));
  const at::Tensor gated = pass.keep(place.probe + "gate", b_c_x[1] * v);
  return pass.keep(place.probe + "out_proj",
                   reference::linear(gated, place.weight("out_proj.weight"), place.find("out_proj.bias")));
}

}  // namespace assay::reference
