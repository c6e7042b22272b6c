#include "fast/blocks/mamba2_mixer.hpp"

#include "fast/kernels/gated_rms_norm.hpp"

namespace assay::fast {

Mamba2MixerWeights mamba2_mixer_weights(const Weights& weights, const std::string& prefix) {
  Mamba2MixerWeights mixer;
  mixer.in_proj = weights.at(prefix + "in_proj.weight");
  mixer.in_proj_bias = weights.optional(prefix + "in_proj.bias");
  mixer.conv1d = weights.at(prefix + "conv1d.weight");
  mixer.conv1d_bias = weights.optional(prefix + "conv1d.bias");
  mixer.dt_bias = weights.at(prefix + "dt_bias");
  mixer.decay = weights.decay(prefix + "A_log");
  mixer.skip = weights.at(prefix + "D");
  mixer.norm = weights.at(prefix + "norm.weight");
  mixer.out_proj = weights.at(prefix + "out_proj.weight");
  mixer.out_proj_bias = weights.optional(prefix + "out_proj.bias");
  return mixer;
}

void mamba2_mixer(Pass& pass, const Mamba2Fields& fields, const Mamba2MixerWeights& weights, int64_t layer,
                  const Matrix& input, const Matrix& output) {
  const std::string prefix = "layers." + std::to_string(layer) + ".mixer.";
  const LayerState state = pass.states[static_cast<size_t>(layer)];
  const int64_t tokens = pass.tokens_in_all();
  const int64_t inner = fields.intermediate_size, heads = fields.num_heads, conv_width = fields.conv_dim();
  const int64_t group_width = fields.n_groups * fields.state_size;
  Arena& arena = pass.scratch;
  Scratch scratch(arena);
  const auto buffer = [&](int64_t width, const char* name) {
    return as_matrix(allocate<float>(arena, {tokens, width}, prefix + name), width);
  };

  mask_padding(pass, input);
  const Matrix projection = buffer(inner + conv_width + heads, "in_proj");
  project(pass, input, weights.in_proj, weights.in_proj_bias, projection);
  pass.probes.add(prefix + "in_proj", projection);
  if (weights.in_proj_bias) mask_padding(pass, projection);
  const Matrix z = projection.slice(0, inner);
  const Matrix raw_dt = projection.slice(inner + conv_width, heads);

  const Matrix convolved = buffer(conv_width, "conv1d");
  CausalConv1dParams<float> conv;
  conv.x = projection.slice(inner, conv_width).data;
  conv.x_stride = projection.stride;
  conv.weight = weights.conv1d.f32();
  conv.bias = weights.conv1d_bias.f32();
  conv.initial_state = pass.is_warm ? state.conv : nullptr;
  conv.mask = pass.mask;
  conv.mask_stride = pass.columns;
  conv.y = convolved.data;
  conv.final_state = state.conv;
  conv.batch = pass.rows;
  conv.length = pass.columns;
  conv.channels = conv_width;
  conv.taps = fields.conv_kernel;
  run_causal_conv1d(pass.context, arena, conv, pass.conv_form);
  pass.probes.add(prefix + "conv1d", convolved);

  const Matrix y = buffer(inner, "ssd");
  Matrix dt_probe;
  if (pass.probes.is_capturing()) dt_probe = buffer(heads, "dt");
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
  ssd.width = fields.head_dim;
  ssd.states = fields.state_size;
  ssd.groups = fields.n_groups;
  ssd.chunk_size = fields.chunk_size;
  ssd.dt_min = static_cast<float>(fields.dt_min);
  ssd.dt_max = static_cast<float>(fields.dt_max);
  run_ssd(pass.context, arena, ssd, pass.scan_form);
  pass.probes.add(prefix + "dt", dt_probe);
  pass.probes.add(prefix + "ssd", y, {heads, fields.head_dim});

  const Matrix normed = buffer(inner, "norm");
  GatedRmsNormParams<float> norm;
  norm.x = y.data;
  norm.z = z.data;
  norm.z_stride = z.stride;
  norm.weight = weights.norm.f32();
  norm.y = normed.data;
  norm.rows = tokens;
  norm.width = inner;
  norm.groups = fields.n_groups;
  norm.epsilon = static_cast<float>(fields.layer_norm_epsilon);
  gated_rms_norm(norm, pass.context.stream());
  pass.context.record(gated_rms_norm_id(norm));
  pass.probes.add(prefix + "norm", normed);

  project(pass, normed, weights.out_proj, weights.out_proj_bias, output);
  pass.probes.add(prefix + "out_proj", output);
  scratch.close();
}

}  // namespace assay::fast
