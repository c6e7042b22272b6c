#include "reference/blocks/mamba_mixer.hpp"

#include "reference/blocks/convolve.hpp"
#include "reference/ops/dt.hpp"
#include "reference/ops/gate.hpp"
#include "reference/ops/linear.hpp"
#include "reference/ops/selective_scan.hpp"

namespace assay::reference {

at::Tensor mamba_mixer(const at::Tensor& h, const WeightStore& weights, const std::string& prefix,
                       const MambaFields& fields, MixerState& state, const Pass& pass, const std::string& probe) {
  const auto weight = [&](const char* name) { return weights.at(prefix + name); };
  const auto bias = [&](const char* name) { return weights.find(prefix + name); };

  const at::Tensor projected = reference::linear(pass.masked(h), weight("in_proj.weight"), bias("in_proj.bias"));
  pass.probes.add(probe + "in_proj", projected);
  const std::vector<at::Tensor> x_z = projected.split(fields.intermediate_size, -1);

  const at::Tensor x = convolve(x_z[0], weight("conv1d.weight"), bias("conv1d.bias"), state, pass);
  pass.probes.add(probe + "conv1d", x);

  const at::Tensor selection = reference::linear(x, weight("x_proj.weight"));
  pass.probes.add(probe + "x_proj", selection);
  const std::vector<at::Tensor> dt_b_c =
      selection.split_with_sizes({fields.time_step_rank, fields.state_size, fields.state_size}, -1);

  const at::Tensor step = reference::dt(reference::linear(dt_b_c[0], weight("dt_proj.weight")), weight("dt_proj.bias"));
  pass.probes.add(probe + "dt", step);

  const at::Tensor A = -at::exp(weight("A_log"));
  const SelectiveScan scan = reference::selective_scan(x, step, A, dt_b_c[1], dt_b_c[2], weight("D"), state.ssm);
  state.ssm = scan.final_state;
  pass.probes.add(probe + "scan", scan.y);

  const at::Tensor gated = reference::gate(scan.y, x_z[1]);
  pass.probes.add(probe + "gate", gated);

  const at::Tensor out = reference::linear(gated, weight("out_proj.weight"), bias("out_proj.bias"));
  pass.probes.add(probe + "out_proj", out);
  return out;
}

}  // namespace assay::reference
