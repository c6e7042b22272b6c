#include "fast/blocks/mamba_mixer.hpp"

#include "fast/blocks/convolve.hpp"
#include "fast/blocks/gather.hpp"
#include "fast/blocks/norm.hpp"

namespace assay::fast {

namespace {

using SelectionNorm = MambaMixerShape::SelectionNorm;

int64_t head_count(const MambaMixerShape& shape) { return shape.heads == 0 ? 1 : shape.heads; }

// in_proj's output is x0, z0, x1, z1, ...
std::vector<int32_t> x_before_z(int64_t channels) {
  std::vector<int32_t> index;
  for (int64_t of = 0; of < 2; ++of)
    for (int64_t i = 0; i < channels; ++i) index.push_back(static_cast<int32_t>(2 * i + of));
  return index;
}

// The matrix of one head of a [nh, out, in] tensor, and the tensor itself where there are no heads.
Weight of_head(const Weight& weight, const MambaMixerShape& shape, int64_t head) {
  if (shape.heads == 0) return weight;
  const Shape inner(weight.shape.begin() + 1, weight.shape.end());
  Weight one = weight;
  one.data = static_cast<float*>(weight.data) + head * element_count(inner);
  one.shape = inner;
  return one;
}

}  // namespace

MambaMixerWeights mamba_mixer_weights(Weights& weights, const std::string& prefix, const MambaMixerShape& shape) {
  MambaMixerWeights mixer;
  mixer.in_proj = weights.at(prefix + "in_proj.weight");
  mixer.in_proj_bias = weights.optional(prefix + "in_proj.bias");
  mixer.conv1d = weights.at(prefix + "conv1d.weight");
  mixer.conv1d_bias = weights.optional(prefix + "conv1d.bias");
  const bool has_heads = shape.heads > 0;
  mixer.x_proj = weights.at(prefix + (has_heads ? "x_proj_weight" : "x_proj.weight"));
  mixer.dt_proj = weights.at(prefix + (has_heads ? "dt_proj_weight" : "dt_proj.weight"));
  mixer.dt_bias = weights.at(prefix + (has_heads ? "dt_proj_bias" : "dt_proj.bias"));
  mixer.decay = weights.decay(prefix + "A_log");
  mixer.skip = weights.at(prefix + "D");
  mixer.out_proj = weights.at(prefix + "out_proj.weight");
  mixer.out_proj_bias = weights.optional(prefix + "out_proj.bias");
  const char* const norms[] = {"dt_layernorm.weight", "b_layernorm.weight", "c_layernorm.weight"};
  if (shape.selection_norm == SelectionNorm::kWeighted)
    for (size_t i = 0; i < 3; ++i) mixer.selection_norms[i] = weights.at(prefix + norms[i]).f32();
  if (has_heads) mixer.x_before_z = weights.keep("x before z", x_before_z(shape.intermediate_size));
  return mixer;
}

void mamba_mixer(Pass& pass, const MambaMixerShape& shape, const MambaMixerWeights& weights, const std::string& probe,
                 int64_t layer, const Matrix& input, const Matrix& output) {
  const LayerState state = pass.states[static_cast<size_t>(layer)];
  const int64_t channels = shape.intermediate_size, states = shape.state_size, rank = shape.time_step_rank;
  const int64_t heads = head_count(shape), width = channels / heads, selection = rank + 2 * states;
  Scratch scratch(pass.scratch);

  mask_padding(pass, input);
  Matrix projection = pass.buffer(2 * channels, probe + "in_proj");
  project(pass, input, weights.in_proj, weights.in_proj_bias, projection);
  pass.probes.add(probe + "in_proj", projection);
  if (weights.in_proj_bias) mask_padding(pass, projection);
  if (weights.x_before_z != nullptr) projection = gather(pass, projection, weights.x_before_z, 2 * channels);
  const Matrix z = projection.slice(channels, channels);

  const Matrix x = pass.buffer(channels, probe + "conv1d");
  convolve(pass, projection.slice(0, channels), weights.conv1d, weights.conv1d_bias, state.conv, x);
  pass.probes.add(probe + "conv1d", x);

  // Head after head in a row.
  const Matrix low = pass.buffer(heads * selection, probe + "x_proj"), dt = pass.buffer(channels, probe + "dt_proj");
  for (int64_t head = 0; head < heads; ++head)
    project(pass, x.slice(head * width, width), of_head(weights.x_proj, shape, head), {},
            low.slice(head * selection, selection));
  if (shape.heads == 0) pass.probes.add(probe + "x_proj", low);
  const Matrix by_head{low.data, low.rows * heads, selection, selection};
  if (shape.selection_norm != SelectionNorm::kNone) {
    const NormKind kind{shape.epsilon};
    norm_in_place(pass, by_head.slice(0, rank), weights.selection_norms[0], kind);
    norm_in_place(pass, by_head.slice(rank, states), weights.selection_norms[1], kind);
    norm_in_place(pass, by_head.slice(rank + states, states), weights.selection_norms[2], kind);
    if (shape.heads == 0) pass.probes.add(probe + "selection", low);
  }
  // The original's projection is no module whose output could be recorded: only B and C are seen, entering the scan.
  if (shape.heads > 0) pass.probes.add(probe + "selection", by_head.slice(rank, 2 * states), {heads, 2 * states});
  for (int64_t head = 0; head < heads; ++head)
    project(pass, low.slice(head * selection, rank), of_head(weights.dt_proj, shape, head), {},
            dt.slice(head * width, width));

  const Matrix gated = pass.buffer(channels, probe + "gate");
  Matrix dt_probe, scan_probe;
  if (pass.probes.is_capturing()) {
    dt_probe = pass.buffer(channels, probe + "dt");
    scan_probe = pass.buffer(channels, probe + "scan");
  }
  SelectiveScanParams<float> scan;
  scan.x = x.data;
  scan.x_stride = x.stride;
  scan.dt = dt.data;
  scan.dt_stride = dt.stride;
  scan.dt_bias = weights.dt_bias.f32();
  scan.a = weights.decay;
  scan.b = low.data + rank;
  scan.b_stride = low.stride;
  scan.b_group_stride = selection;
  scan.c = low.data + rank + states;
  scan.c_stride = low.stride;
  scan.c_group_stride = selection;
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
  scan.groups = heads;
  run_selective_scan(pass.context, pass.scratch, scan, pass.forms.selective_scan);
  const Shape inner = shape.heads == 0 ? Shape{channels} : Shape{heads, width};
  pass.probes.add(probe + "dt", dt_probe, inner);
  pass.probes.add(probe + "scan", scan_probe, inner);
  pass.probes.add(probe + "gate", gated);

  project(pass, gated, weights.out_proj, weights.out_proj_bias, output);
  pass.probes.add(probe + "out_proj", output);
  scratch.close();
}

}  // namespace assay::fast
