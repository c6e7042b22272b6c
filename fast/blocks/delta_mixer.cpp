#include "fast/blocks/delta_mixer.hpp"

#include "fast/blocks/convolve.hpp"
#include "fast/blocks/gated_sequence_ops.hpp"
#include "fast/blocks/gather.hpp"
#include "fast/kernels/gated_rms_norm.hpp"

namespace assay::fast {

namespace {

struct Projections {
  Matrix qkv;   // [T, 2 Hk dk + Hv dv]
  Matrix z;     // [T, Hv dv]
  Matrix b, a;  // [T, Hv]
};

// Columns of rows that are made of `blocks` blocks, each of the given parts: all of part 0, then all of part 1, ...
std::vector<int32_t> parts_side_by_side(int64_t blocks, const std::vector<int64_t>& widths) {
  int64_t block_width = 0;
  for (int64_t width : widths) block_width += width;
  std::vector<int32_t> order;
  int64_t begin = 0;
  for (int64_t width : widths) {
    for (int64_t block = 0; block < blocks; ++block)
      for (int64_t i = 0; i < width; ++i) order.push_back(static_cast<int32_t>(block * block_width + begin + i));
    begin += width;
  }
  return order;
}

Projections project_all(Pass& pass, const DeltaMixerShape& shape, const DeltaMixerWeights& weights,
                        const std::string& probe, const Matrix& input) {
  const auto kept = [&](const Weight& weight, const std::string& name) {
    const Matrix y = pass.buffer(weight.shape[0], probe + name);
    project(pass, input, weight, {}, y);
    pass.probes.add(probe + name, y);
    return y;
  };
  if (!shape.is_packed) {
    Projections all;
    all.qkv = kept(weights.in_proj_qkv, "in_proj_qkv");
    all.z = kept(weights.in_proj_z, "in_proj_z");
    all.b = kept(weights.in_proj_b, "in_proj_b");
    all.a = kept(weights.in_proj_a, "in_proj_a");
    return all;
  }
  const Matrix packed = kept(weights.in_proj_qkvz, "in_proj_qkvz"), packed_ba = kept(weights.in_proj_ba, "in_proj_ba");
  const Matrix qkvz = gather(pass, packed, weights.qkvz_order, packed.columns);
  const Matrix ba = gather(pass, packed_ba, weights.ba_order, packed_ba.columns);
  return {qkvz.slice(0, shape.conv_dim()), qkvz.slice(shape.conv_dim(), shape.values()), ba.slice(0, shape.value_heads),
          ba.slice(shape.value_heads, shape.value_heads)};
}

}  // namespace

std::vector<int32_t> packed_qkvz_order(const DeltaMixerShape& shape) {
  const int64_t width = shape.values() / shape.key_heads;
  return parts_side_by_side(shape.key_heads, {shape.key_dim, shape.key_dim, width, width});
}

std::vector<int32_t> packed_ba_order(const DeltaMixerShape& shape) {
  const int64_t shared_by = shape.value_heads / shape.key_heads;
  return parts_side_by_side(shape.key_heads, {shared_by, shared_by});
}

DeltaMixerWeights delta_mixer_weights(Weights& weights, const std::string& prefix, const DeltaMixerShape& shape) {
  DeltaMixerWeights mixer;
  if (shape.is_packed) {
    mixer.in_proj_qkvz = weights.at(prefix + "in_proj_qkvz.weight");
    mixer.in_proj_ba = weights.at(prefix + "in_proj_ba.weight");
    mixer.qkvz_order = weights.keep("order of q, k, v, z", packed_qkvz_order(shape));
    mixer.ba_order = weights.keep("order of b, a", packed_ba_order(shape));
  } else {
    mixer.in_proj_qkv = weights.at(prefix + "in_proj_qkv.weight");
    mixer.in_proj_z = weights.at(prefix + "in_proj_z.weight");
    mixer.in_proj_b = weights.at(prefix + "in_proj_b.weight");
    mixer.in_proj_a = weights.at(prefix + "in_proj_a.weight");
  }
  mixer.conv1d = weights.at(prefix + "conv1d.weight");
  mixer.dt_bias = weights.at(prefix + "dt_bias");
  mixer.decay = weights.decay(prefix + "A_log");
  mixer.norm = weights.at(prefix + "norm.weight");
  mixer.out_proj = weights.at(prefix + "out_proj.weight");
  return mixer;
}

void delta_mixer(Pass& pass, const DeltaMixerShape& shape, const DeltaMixerWeights& weights, const std::string& probe,
                 int64_t layer, const Matrix& input, const Matrix& output) {
  const LayerState state = pass.states[static_cast<size_t>(layer)];
  const int64_t keys = shape.keys(), values = shape.values(), value_heads = shape.value_heads;
  Scratch scratch(pass.scratch);

  mask_padding(pass, input);
  const Projections in = project_all(pass, shape, weights, probe, input);
  const Matrix qkv = pass.buffer(shape.conv_dim(), probe + "conv1d");
  convolve(pass, in.qkv, weights.conv1d, {}, state.conv, qkv);
  pass.probes.add(probe + "conv1d", qkv);

  const Matrix o = pass.buffer(values, probe + "delta");
  Matrix beta_probe, g_probe;
  if (pass.probes.is_capturing()) {
    beta_probe = pass.buffer(value_heads, probe + "beta");
    g_probe = pass.buffer(value_heads, probe + "g");
  }
  GatedDeltaRuleParams<float> rule;
  rule.q = qkv.data;
  rule.k = qkv.slice(keys, keys).data;
  rule.v = qkv.slice(2 * keys, values).data;
  rule.q_stride = rule.k_stride = rule.v_stride = qkv.stride;
  rule.g = in.a.data;
  rule.g_stride = in.a.stride;
  rule.a = weights.decay;
  rule.dt_bias = weights.dt_bias.f32();
  rule.beta = in.b.data;
  rule.beta_stride = in.b.stride;
  rule.has_sigmoid = true;
  rule.initial_state = pass.is_warm ? state.delta : nullptr;
  rule.o = o.data;
  rule.final_state = state.delta;
  rule.g_out = g_probe.data;
  rule.beta_out = beta_probe.data;
  rule.batch = pass.rows;
  rule.length = pass.columns;
  rule.key_heads = shape.key_heads;
  rule.value_heads = value_heads;
  rule.key_dim = shape.key_dim;
  rule.value_dim = shape.value_dim;
  run_gated_delta_rule(pass.context, pass.scratch, rule, pass.forms.gated_delta_rule);
  pass.probes.add(probe + "beta", beta_probe);
  pass.probes.add(probe + "g", g_probe);
  pass.probes.add(probe + "delta", o, {value_heads, shape.value_dim});

  GatedRmsNormParams<float> norm;
  norm.x = o.data;
  norm.z = in.z.data;
  norm.z_stride = in.z.stride;
  norm.weight = weights.norm.f32();
  norm.y = o.data;
  norm.rows = o.rows;
  norm.width = values;
  norm.groups = value_heads;
  norm.is_weight_shared = true;
  norm.epsilon = static_cast<float>(shape.epsilon);
  rms_norm_gated(norm, pass.context.stream());
  pass.context.record(rms_norm_gated_id(norm));
  pass.probes.add(probe + "norm", o, {value_heads, shape.value_dim});

  project(pass, o, weights.out_proj, {}, output);
  pass.probes.add(probe + "out_proj", output);
  scratch.close();
}

}  // namespace assay::fast
