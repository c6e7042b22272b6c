#include "cases/spec/blocks/mamba2_mixer.hpp"

#include <fmt/format.h>

namespace assay {

namespace {

// Groups of x at unlike scales: a gated norm over all of I instead of over each group then shows.
std::vector<WeightSpec::RowScale> group_scales(const Mamba2MixerShape& shape) {
  const int64_t I = shape.intermediate_size, width = I / shape.groups;
  std::vector<WeightSpec::RowScale> scales;
  for (int64_t g = 0; g < shape.groups; ++g)
    scales.push_back({I + g * width, I + (g + 1) * width, g % 2 == 0 ? 0.6 : 1.8});
  // dt must differ from token to token without leaving the useful range of softplus.
  scales.push_back({I + shape.conv_dim(), shape.projected(), 0.5});
  return scales;
}

}  // namespace

Mamba2MixerShape read_mamba2_mixer(const FieldReader& read, int64_t hidden_size, double epsilon) {
  Mamba2MixerShape shape;
  shape.hidden_size = hidden_size;
  shape.intermediate_size = read.size("mamba_expand", 2) * hidden_size;
  shape.state_size = read.size("mamba_d_state", 256);
  shape.conv_kernel = read.size("mamba_d_conv", 4, 2, 4);
  shape.heads = read.size("mamba_n_heads", 128);
  if (shape.intermediate_size % shape.heads != 0)
    read.refuse("mamba_n_heads", fmt::format("a divisor of mamba_expand * hidden_size = {}", shape.intermediate_size));
  const int64_t derived = shape.intermediate_size / shape.heads;
  const bool is_auto = !read.has("mamba_d_head") || read.value("mamba_d_head") == "auto";
  shape.head_dim = is_auto ? derived : read.size("mamba_d_head", derived);
  if (shape.head_dim != derived)
    read.refuse("mamba_d_head", fmt::format("mamba_expand * hidden_size / mamba_n_heads = {}", derived));
  shape.groups = read.size("mamba_n_groups", 1);
  if (shape.heads % shape.groups != 0)
    read.refuse("mamba_n_groups", fmt::format("a divisor of mamba_n_heads = {}", shape.heads));
  shape.chunk_size = read.size("mamba_chunk_size", 256);
  shape.epsilon = epsilon;
  const auto limits = read.limits("time_step_limit", {0.0, std::numeric_limits<double>::infinity()});
  shape.dt_min = limits.first;
  shape.dt_max = limits.second;
  shape.has_in_bias = shape.has_out_bias = read.flag("mamba_proj_bias", false);
  shape.has_conv_bias = read.flag("mamba_conv_bias", true);
  return shape;
}

double elements_of(const Mamba2MixerShape& shape) {
  const auto H = static_cast<double>(shape.hidden_size), I = static_cast<double>(shape.intermediate_size),
             N = static_cast<double>(shape.state_size), C = I + 2 * static_cast<double>(shape.groups) * N;
  return (3 * I + C) * H + 12 * C + I * N;
}

void describe_weights(WeightTable& table, const std::string& prefix, const Mamba2MixerShape& shape) {
  const int64_t H = shape.hidden_size, I = shape.intermediate_size, C = shape.conv_dim();
  table.push_back({prefix + "dt_bias", {shape.heads}, Role::kDtBias, 1, {}});
  table.push_back({prefix + "A_log", {shape.heads}, Role::kALog, 1, {}});
  table.push_back({prefix + "D", {shape.heads}, Role::kSkip, 1, {}});
  describe_linear(table, prefix + "in_proj", shape.projected(), H, Role::kInProj, shape.has_in_bias,
                  group_scales(shape));
  table.push_back({prefix + "conv1d.weight", {C, 1, shape.conv_kernel}, Role::kConv, shape.conv_kernel, {}});
  if (shape.has_conv_bias) table.push_back({prefix + "conv1d.bias", {C}, Role::kConvBias, 1, {}});
  if (shape.gate != Mamba2MixerShape::Gate::kGateOnly)
    table.push_back({prefix + "norm.weight", {I}, Role::kGatedNorm, 1, {}});
  describe_linear(table, prefix + "out_proj", H, I, Role::kOutProj, shape.has_out_bias, {{0, H, shape.out_scale}});
}

void describe_probes(ProbeTable& table, const std::string& probe, int64_t layer, const Mamba2MixerShape& shape) {
  table.add(probe + "in_proj", {shape.projected()}, "linear", layer);
  table.add(probe + "conv1d", {shape.conv_dim()}, "causal_conv1d", layer);
  table.add(probe + "dt", {shape.heads}, "dt", layer);
  table.add(probe + "ssd", {shape.heads, shape.head_dim}, "ssd", layer);
  if (shape.gate == Mamba2MixerShape::Gate::kGateOnly)
    table.add(probe + "gate", {shape.intermediate_size}, "gate", layer);
  else
    table.add(probe + "norm", {shape.intermediate_size}, "gated_rms_norm", layer);
  table.add(probe + "out_proj", {shape.hidden_size}, "linear", layer);
  table.add_state(probe + "conv_state", {shape.conv_dim(), shape.conv_kernel}, "causal_conv1d", layer);
  table.add_state(probe + "ssm_state", {shape.heads, shape.head_dim, shape.state_size}, "ssd", layer, shape.heads);
}

}  // namespace assay
