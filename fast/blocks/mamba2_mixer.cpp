#include "fast/blocks/mamba2_mixer.hpp"

#include <array>

#include "fast/blocks/convolve.hpp"
#include "fast/kernels/elementwise.hpp"
#include "fast/kernels/gated_rms_norm.hpp"

namespace assay::fast {

namespace {

using Gate = Mamba2MixerShape::Gate;

// The projection times one constant for each of its parts z, x, B, C, dt, in place.
void multiply_parts(Pass& pass, const Mamba2MixerShape& shape, const Matrix& projection) {
  const int64_t group_width = shape.groups * shape.state_size;
  const std::array<int64_t, 5> widths = {shape.intermediate_size, shape.intermediate_size, group_width, group_width,
                                         shape.heads};
  int64_t begin = 0;
  for (size_t i = 0; i < widths.size(); ++i) {
    const Matrix part = projection.slice(begin, widths[i]);
    if (shape.multipliers.at(i) != 1) scale(pass, part, shape.multipliers.at(i), part);
    begin += widths[i];
  }
}

// y gated by z and normed, in place.
void gate_and_norm(Pass& pass, const Mamba2MixerShape& shape, const Mamba2MixerWeights& weights, const Matrix& y,
                   const Matrix& z, const std::string& probe) {
  if (shape.gate == Gate::kGateOnly) {
    SiluGateParams<float> gate;
    gate.x = y.data;
    gate.z = z.data;
    gate.z_stride = z.stride;
    gate.y = y.data;
    gate.rows = y.rows;
    gate.width = y.columns;
    silu_gate(gate, pass.context.stream());
    pass.context.record(silu_gate_id(gate));
    pass.probes.add(probe + "gate", y);
    return;
  }
  GatedRmsNormParams<float> norm;
  norm.x = y.data;
  norm.z = z.data;
  norm.z_stride = z.stride;
  norm.weight = weights.norm.f32();
  norm.y = y.data;
  norm.rows = y.rows;
  norm.width = y.columns;
  norm.groups = shape.groups;
  norm.epsilon = static_cast<float>(shape.epsilon);
  const bool is_gate_first = shape.gate == Gate::kGateThenNorm;
  is_gate_first ? gated_rms_norm(norm, pass.context.stream()) : rms_norm_gated(norm, pass.context.stream());
  pass.context.record(is_gate_first ? gated_rms_norm_id(norm) : rms_norm_gated_id(norm));
  pass.probes.add(probe + "norm", y);
}

}  // namespace

Mamba2MixerWeights mamba2_mixer_weights(Weights& weights, const std::string& prefix, const Mamba2MixerShape& shape) {
  Mamba2MixerWeights mixer;
  mixer.in_proj = weights.at(prefix + "in_proj.weight");
  mixer.in_proj_bias = weights.optional(prefix + "in_proj.bias");
  mixer.conv1d = weights.at(prefix + "conv1d.weight");
  mixer.conv1d_bias = weights.optional(prefix + "conv1d.bias");
  mixer.dt_bias = weights.at(prefix + "dt_bias");
  mixer.decay = weights.decay(prefix + "A_log");
  mixer.skip = weights.at(prefix + "D");
  if (shape.gate != Gate::kGateOnly) mixer.norm = weights.at(prefix + "norm.weight");
  mixer.out_proj = weights.at(prefix + "out_proj.weight");
  mixer.out_proj_bias = weights.optional(prefix + "out_proj.bias");
  return mixer;
}

void mamba2_mixer(Pass& pass, const Mamba2MixerShape& shape, const Mamba2MixerWeights& weights,
                  const std::string& probe, int64_t layer, const Matrix& input, const Matrix& output) {
  const LayerState state = pass.states[static_cast<size_t>(layer)];
  const int64_t inner = shape.intermediate_size, heads = shape.heads, conv_width = shape.conv_dim();
  const int64_t group_width = shape.groups * shape.state_size;
  Scratch scratch(pass.scratch);

  mask_padding(pass, input);
  Matrix in = input;
  if (shape.in_multiplier != 1) {
    in = pass.buffer(input.columns, probe + "scaled input");
    scale(pass, input, shape.in_multiplier, in);
  }
  const Matrix projection = pass.buffer(inner + conv_width + heads, probe + "in_proj");
  project(pass, in, weights.in_proj, weights.in_proj_bias, projection);
  pass.probes.add(probe + "in_proj", projection);
  if (weights.in_proj_bias) mask_padding(pass, projection);
  multiply_parts(pass, shape, projection);
  const Matrix z = projection.slice(0, inner);
  const Matrix raw_dt = projection.slice(inner + conv_width, heads);

  const Matrix convolved = pass.buffer(conv_width, probe + "conv1d");
  convolve(pass, projection.slice(inner, conv_width), weights.conv1d, weights.conv1d_bias, state.conv, convolved);
  pass.probes.add(probe + "conv1d", convolved);

  const Matrix y = pass.buffer(inner, probe + "ssd");
  Matrix dt_probe;
  if (pass.probes.is_capturing()) dt_probe = pass.buffer(heads, probe + "dt");
  SsdParams<float> ssd;
  ssd.x = convolved.data;
  ssd.x_stride = convolved.stride;
  ssd.dt = raw_dt.data;
  ssd.dt_stride = raw_dt.stride;
  ssd.dt_bias = weights.dt_bias.f32();
  ssd.a = weights.decay;
  ssd.b = convolved.slice(inner, group_width).data;
  ssd.b_stride = convolved.stride;
  ssd.c = convolved.slice(inner + group_width, group_width).data;
  ssd.c_stride = convolved.stride;
  ssd.skip = weights.skip.f32();
  ssd.initial_state = pass.is_warm ? state.ssm : nullptr;
  ssd.y = y.data;
  ssd.final_state = state.ssm;
  ssd.dt_out = dt_probe.data;
  ssd.batch = pass.rows;
  ssd.length = pass.columns;
  ssd.heads = heads;
  ssd.width = shape.head_dim;
  ssd.states = shape.state_size;
  ssd.groups = shape.groups;
  ssd.chunk_size = shape.chunk_size;
  ssd.dt_min = static_cast<float>(shape.dt_min);
  ssd.dt_max = static_cast<float>(shape.dt_max);
  run_ssd(pass.context, pass.scratch, ssd, pass.forms.ssd);
  pass.probes.add(probe + "dt", dt_probe);
  pass.probes.add(probe + "ssd", y, {heads, shape.head_dim});

  gate_and_norm(pass, shape, weights, y, z, probe);
  project(pass, y, weights.out_proj, weights.out_proj_bias, output);
  pass.probes.add(probe + "out_proj", output);
  scratch.close();
}

}  // namespace assay::fast
