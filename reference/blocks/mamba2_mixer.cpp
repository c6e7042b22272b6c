#include "reference/blocks/mamba2_mixer.hpp"

#include "reference/blocks/convolve.hpp"
#include "reference/ops/dt.hpp"
#include "reference/ops/gated_rms_norm.hpp"
#include "reference/ops/linear.hpp"
#include "reference/ops/ssd.hpp"

namespace assay::reference {

at::Tensor mamba2_mixer(const at::Tensor& h, const WeightStore& weights, const std::string& prefix,
                        const Mamba2Fields& fields, MixerState& state, const Pass& pass, const std::string& probe) {
  const auto weight = [&](const char* name) { return weights.at(prefix + name); };
  const auto bias = [&](const char* name) { return weights.find(prefix + name); };
  const int64_t rows = h.size(0), length = h.size(1);

  const at::Tensor projected = reference::linear(pass.masked(h), weight("in_proj.weight"), bias("in_proj.bias"));
  pass.probes.add(probe + "in_proj", projected);
  const std::vector<at::Tensor> z_xbc_dt =
      projected.split_with_sizes({fields.intermediate_size, fields.conv_dim(), fields.num_heads}, -1);

  const at::Tensor xbc = convolve(z_xbc_dt[1], weight("conv1d.weight"), bias("conv1d.bias"), state, pass);
  pass.probes.add(probe + "conv1d", xbc);
  const int64_t group_width = fields.n_groups * fields.state_size;
  const std::vector<at::Tensor> x_b_c = xbc.split_with_sizes({fields.intermediate_size, group_width, group_width}, -1);
  const at::Tensor x = x_b_c[0].reshape({rows, length, fields.num_heads, fields.head_dim});
  const at::Tensor B = x_b_c[1].reshape({rows, length, fields.n_groups, fields.state_size});
  const at::Tensor C = x_b_c[2].reshape({rows, length, fields.n_groups, fields.state_size});

  const at::Tensor step = reference::dt(z_xbc_dt[2], weight("dt_bias"), fields.dt_min, fields.dt_max);
  pass.probes.add(probe + "dt", step);

  const at::Tensor A = -at::exp(weight("A_log")), D = weight("D");
  const Ssd scan = pass.forms.of("ssd") == "chunked"
                       ? reference::ssd_chunked(x, step, A, B, C, D, fields.chunk_size, state.ssm)
                       : reference::ssd_recurrent(x, step, A, B, C, D, state.ssm);
  state.ssm = scan.final_state;
  pass.probes.add(probe + "ssd", scan.y);

  const at::Tensor y = scan.y.reshape({rows, length, fields.intermediate_size});
  const at::Tensor normed =
      reference::gated_rms_norm(y, z_xbc_dt[0], weight("norm.weight"), fields.n_groups, fields.layer_norm_epsilon);
  pass.probes.add(probe + "norm", normed);

  const at::Tensor out = reference::linear(normed, weight("out_proj.weight"), bias("out_proj.bias"));
  pass.probes.add(probe + "out_proj", out);
  return out;
}

}  // namespace assay::reference
