#include "reference/blocks/mamba2_mixer.hpp"

#include <array>

#include "reference/blocks/convolve.hpp"
#include "reference/ops/dt.hpp"
#include "reference/ops/gate.hpp"
#include "reference/ops/gated_rms_norm.hpp"
#include "reference/ops/linear.hpp"
#include "reference/ops/ssd.hpp"

namespace assay::reference {

namespace {

at::Tensor scaled(const at::Tensor& x, double multiplier) { return multiplier == 1 ? x : x * multiplier; }

// The projection times one constant for each of its parts z, x, B, C, dt.
at::Tensor multiplied(const at::Tensor& projected, const Mamba2MixerShape& shape) {
  const int64_t group_width = shape.groups * shape.state_size;
  const std::array<int64_t, 5> widths = {shape.intermediate_size, shape.intermediate_size, group_width, group_width,
                                         shape.heads};
  std::vector<at::Tensor> parts = projected.split_with_sizes(widths, -1);
  for (size_t i = 0; i < parts.size(); ++i) parts[i] = scaled(parts[i], shape.multipliers.at(i));
  return at::cat(parts, -1);
}

at::Tensor gate_and_norm(const at::Tensor& y, const at::Tensor& z, const Place& place, const Mamba2MixerShape& shape,
                         const Pass& pass) {
  using Gate = Mamba2MixerShape::Gate;
  if (shape.gate == Gate::kGateOnly) return pass.keep(place.probe + "gate", reference::gate(y, z));
  const auto norm = shape.gate == Gate::kGateThenNorm ? reference::gated_rms_norm : reference::rms_norm_gated;
  return pass.keep(place.probe + "norm", norm(y, z, place.weight("norm.weight"), shape.groups, shape.epsilon));
}

}  // namespace

at::Tensor mamba2_mixer(const at::Tensor& h, const Place& place, const Mamba2MixerShape& shape, LayerState& state,
                        const Pass& pass) {
  const int64_t rows = h.size(0), length = h.size(1);

  const at::Tensor projected =
      pass.keep(place.probe + "in_proj", reference::linear(pass.rounded(scaled(pass.masked(h), shape.in_multiplier)),
                                                           place.weight("in_proj.weight"), place.find("in_proj.bias")));
  const std::vector<at::Tensor> z_xbc_dt =
      pass.rounded(multiplied(projected, shape))
          .split_with_sizes({shape.intermediate_size, shape.conv_dim(), shape.heads}, -1);

  const at::Tensor xbc = pass.keep(place.probe + "conv1d", convolve(z_xbc_dt[1], place.weight("conv1d.weight"),
                                                                    place.find("conv1d.bias"), state, pass));
  const int64_t group_width = shape.groups * shape.state_size;
  const std::vector<at::Tensor> x_b_c = xbc.split_with_sizes({shape.intermediate_size, group_width, group_width}, -1);
  const at::Tensor x = x_b_c[0].reshape({rows, length, shape.heads, shape.head_dim});
  const at::Tensor B = x_b_c[1].reshape({rows, length, shape.groups, shape.state_size});
  const at::Tensor C = x_b_c[2].reshape({rows, length, shape.groups, shape.state_size});

  const at::Tensor step = reference::dt(z_xbc_dt[2], place.weight("dt_bias"), shape.dt_min, shape.dt_max);
  pass.probes.add(place.probe + "dt", step);

  const at::Tensor A = -at::exp(place.weight("A_log")), D = place.weight("D");
  const Ssd scan = pass.forms.of("ssd") == "chunked"
                       ? reference::ssd_chunked(x, step, A, B, C, D, shape.chunk_size, state.ssm)
                       : reference::ssd_recurrent(x, step, A, B, C, D, state.ssm);
  state.ssm = scan.final_state;
  const at::Tensor y = pass.keep(place.probe + "ssd", scan.y).reshape({rows, length, shape.intermediate_size});
  const at::Tensor gated = gate_and_norm(y, z_xbc_dt[0], place, shape, pass);

  return pass.keep(place.probe + "out_proj",
                   reference::linear(gated, place.weight("out_proj.weight"), place.find("out_proj.bias")));
}

}  // namespace assay::reference
