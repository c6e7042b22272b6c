#include "reference/blocks/mamba_mixer.hpp"

#include <utility>
#include <vector>

#include "reference/blocks/convolve.hpp"
#include "reference/ops/dt.hpp"
#include "reference/ops/gate.hpp"
#include "reference/ops/linear.hpp"
#include "reference/ops/rms_norm.hpp"
#include "reference/ops/selective_scan.hpp"

namespace assay::reference {

namespace {

using SelectionNorm = MambaMixerShape::SelectionNorm;

// What one head selects and scans with; the plain layout is one head over all channels.
struct HeadWeights {
  at::Tensor x_proj, dt_proj, dt_bias, A_log, D;
};

HeadWeights head_weights(const Place& place, const MambaMixerShape& shape, int64_t head) {
  if (shape.heads == 0)
    return {place.weight("x_proj.weight"), place.weight("dt_proj.weight"), place.weight("dt_proj.bias"),
            place.weight("A_log"), place.weight("D")};
  return {place.weight("x_proj_weight")[head], place.weight("dt_proj_weight")[head], place.weight("dt_proj_bias")[head],
          place.weight("A_log")[head], place.weight("D")[head]};
}

// x and z: two halves of the rows, or every other row where there are heads.
std::pair<at::Tensor, at::Tensor> x_and_z(const at::Tensor& projected, const MambaMixerShape& shape) {
  const int64_t I = shape.intermediate_size;
  if (shape.heads == 0) return {projected.narrow(-1, 0, I), projected.narrow(-1, I, I)};
  const at::Tensor pairs = projected.unflatten(-1, {I, 2});
  return {pairs.select(-1, 0), pairs.select(-1, 1)};
}

// dt_low, B and C, each normed over its own width.
at::Tensor normed(const at::Tensor& selection, const Place& place, const MambaMixerShape& shape) {
  std::vector<at::Tensor> parts =
      selection.split_with_sizes({shape.time_step_rank, shape.state_size, shape.state_size}, -1);
  const char* const names[] = {"dt_layernorm.weight", "b_layernorm.weight", "c_layernorm.weight"};
  for (size_t i = 0; i < parts.size(); ++i) {
    const at::Tensor weight = shape.selection_norm == SelectionNorm::kWeighted
                                  ? place.weight(names[i])
                                  : at::ones({parts[i].size(-1)}, selection.options());
    parts[i] = reference::rms_norm(parts[i], weight, shape.epsilon);
  }
  return at::cat(parts, -1);
}

// Each head's tensor in a dimension of its own, or the one head's as it is.
at::Tensor heads_together(const std::vector<at::Tensor>& heads, const MambaMixerShape& shape, int64_t dimension) {
  return shape.heads == 0 ? heads[0] : at::stack(heads, dimension);
}

}  // namespace

at::Tensor mamba_mixer(const at::Tensor& h, const Place& place, const MambaMixerShape& shape, LayerState& state,
                       const Pass& pass) {
  const at::Tensor projected =
      pass.keep(place.probe + "in_proj",
                reference::linear(pass.masked(h), place.weight("in_proj.weight"), place.find("in_proj.bias")));
  const auto [x_in, z] = x_and_z(projected, shape);
  const at::Tensor x = pass.keep(place.probe + "conv1d",
                                 convolve(x_in, place.weight("conv1d.weight"), place.find("conv1d.bias"), state, pass));

  const int64_t count = shape.heads == 0 ? 1 : shape.heads, width = shape.intermediate_size / count;
  std::vector<at::Tensor> raw, selected, steps, scans, states;
  for (int64_t head = 0; head < count; ++head) {
    const HeadWeights weights = head_weights(place, shape, head);
    const at::Tensor channels = x.narrow(-1, head * width, width);
    raw.push_back(pass.rounded(reference::linear(channels, weights.x_proj)));
    selected.push_back(shape.selection_norm == SelectionNorm::kNone ? raw.back()
                                                                    : pass.rounded(normed(raw.back(), place, shape)));
    const std::vector<at::Tensor> dt_b_c =
        selected.back().split_with_sizes({shape.time_step_rank, shape.state_size, shape.state_size}, -1);
    steps.push_back(reference::dt(pass.rounded(reference::linear(dt_b_c[0], weights.dt_proj)), weights.dt_bias));
    const SelectiveScan scan =
        reference::selective_scan(channels, steps.back(), -at::exp(weights.A_log), dt_b_c[1], dt_b_c[2], weights.D,
                                  shape.heads == 0 ? state.ssm : state.ssm.select(1, head));
    scans.push_back(pass.rounded(scan.y));
    states.push_back(scan.final_state);
  }
  state.ssm = heads_together(states, shape, 1);
  if (shape.heads == 0) {
    pass.probes.add(place.probe + "x_proj", raw[0]);
    if (shape.selection_norm != SelectionNorm::kNone) pass.probes.add(place.probe + "selection", selected[0]);
  } else {
    // The original's projection is no module whose output could be recorded: only B and C are seen, entering the scan.
    const at::Tensor b_c = at::stack(selected, 2).narrow(-1, shape.time_step_rank, 2 * shape.state_size);
    pass.probes.add(place.probe + "selection", b_c);
  }
  pass.probes.add(place.probe + "dt", heads_together(steps, shape, 2));
  pass.probes.add(place.probe + "scan", heads_together(scans, shape, 2));

  const at::Tensor gated = pass.keep(place.probe + "gate", reference::gate(at::cat(scans, -1), z));
  return pass.keep(place.probe + "out_proj",
                   reference::linear(gated, place.weight("out_proj.weight"), place.find("out_proj.bias")));
}

}  // namespace assay::reference
