#include "fast/blocks/mamba_mixer.hpp"

namespace assay::fast {

MambaMixerWeights mamba_mixer_weights(const Weights& weights, const std::string& prefix) {
  MambaMixerWeights mixer;
  mixer.in_proj = weights.at(prefix + "in_proj.weight");
  mixer.in_proj_bias = weights.optional(prefix + "in_proj.bias");
  mixer.conv1d = weights.at(prefix + "conv1d.weight");
  mixer.conv1d_bias = weights.optional(prefix + "conv1d.bias");
  mixer.x_proj = weights.at(prefix + "x_proj.weight");
  mixer.dt_proj = weights.at(prefix + "dt_proj.weight");
  mixer.dt_bias = weights.at(prefix + "dt_proj.bias");
  mixer.decay = weights.decay(prefix + "A_log");
  mixer.skip = weights.at(prefix + "D");
  mixer.out_proj = weights.at(prefix + "out_proj.weight");
  mixer.out_proj_bias = weights.optional(prefix + "out_proj.bias");
  return mixer;
}

void mamba_mixer(Pass& pass, const MambaFields& fields, const MambaMixerWeights& weights, int64_t layer,
                 const Matrix& input, const Matrix& output) {
  const std::string prefix = "layers." + std::to_string(layer) + ".mixer.";
  const LayerState state = pass.states[static_cast<size_t>(layer)];
  const int64_t tokens = pass.tokens_in_all();
  const int64_t channels = fields.intermediate_size, states = fields.state_size, rank = fields.time_step_rank;
  Arena& arena = pass.scratch;
  Scratch scratch(arena);
  const auto buffer = [&](int64_t width, const char* name) {
    return as_matrix(allocate<float>(arena, {tokens, width}, prefix + name), width);
  };

  mask_padding(pass, input);
  const Matrix projection = buffer(2 * channels, "in_proj");
  project(pass, input, weights.in_proj, weights.in_proj_bias, projection);
  pass.probes.add(prefix + "in_proj", projection);
  if (weights.in_proj_bias) mask_padding(pass, projection);
  const Matrix z = projection.slice(channels, channels);

  const Matrix x = buffer(channels, "conv1d");
  CausalConv1dParams<float> conv;
  conv.x = projection.data;
  conv.x_stride = projection.stride;
  conv.weight = weights.conv1d.f32();
  conv.bias = weights.conv1d_bias.f32();
  conv.initial_state = pass.is_warm ? state.conv : nullptr;
  conv.mask = pass.mask;
  conv.mask_stride = pass.columns;
  conv.y = x.data;
  conv.final_state = state.conv;
  conv.batch = pass.rows;
  conv.length = pass.columns;
  conv.channels = channels;
  conv.taps = fields.conv_kernel;
  run_causal_conv1d(pass.context, arena, conv, pass.conv_form);
  pass.probes.add(prefix + "conv1d", x);

  const Matrix low = buffer(rank + 2 * states, "x_proj");
  project(pass, x, weights.x_proj, {}, low);
  pass.probes.add(prefix + "x_proj", low);

  const Matrix dt = buffer(channels, "dt_proj");
  project(pass, low.slice(0, rank), weights.dt_proj, {}, dt);

  const Matrix gated = buffer(channels, "gate");
  Matrix dt_probe, scan_probe;
  if (pass.probes.is_capturing()) {
    dt_probe = buffer(channels, "dt");
    scan_probe = buffer(channels, "scan");
  }
  SelectiveScanParams<float> scan;
  scan.x = x.data;
  scan.x_stride = x.stride;
  scan.dt = dt.data;
  scan.dt_stride = dt.stride;
  scan.dt_bias = weights.dt_bias.f32();
  scan.a = weights.decay;
  scan.b = low.slice(rank, states).data;
  scan.b_stride = low.stride;
  scan.c = low.slice(rank + states, states).data;
  scan.c_stride = low.stride;
  scan.skip = weights.skip.f32();
  scan.z = z.data;
  scan.z_stride = z.stride;
  scan.initial_state = pass.is_warm ? state.ssm : nullptr;
  scan.y = gated.data;
  scan.final_state = state.ssm;
  scan.dt_out = dt_probe.data;
  scan.ungated = scan_probe.data;
  scan.batch = pass.rows;
  scan.length = pass.columns;
  scan.channels = channels;
  scan.states = states;
  run_selective_scan(pass.context, arena, scan, pass.scan_form);
  pass.probes.add(prefix + "dt", dt_probe);
  pass.probes.add(prefix + "scan", scan_probe);
  pass.probes.add(prefix + "gate", gated);

  project(pass, gated, weights.out_proj, weights.out_proj_bias, output);
  pass.probes.add(prefix + "out_proj", output);
  scratch.close();
}

}  // namespace assay::fast
