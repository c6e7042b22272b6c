#include "cases/spec/blocks/mamba_mixer.hpp"

#include <fmt/format.h>

namespace assay {

MambaMixerShape read_mamba_mixer(const FieldReader& read, int64_t hidden_size, const MambaMixerFields& names) {
  MambaMixerShape shape;
  shape.hidden_size = hidden_size;
  shape.intermediate_size = read.size(names.expand, 2) * hidden_size;
  if (shape.intermediate_size > FieldReader::kLargestSize)
    read.refuse(names.expand, fmt::format("{} * hidden_size at most {}", names.expand, FieldReader::kLargestSize));
  shape.state_size = read.size(names.state_size, 16);
  shape.conv_kernel = read.size(names.conv_kernel, 4, 2, 4);
  const bool is_word = read.has(names.time_step_rank) && read.value(names.time_step_rank).is_string();
  if (is_word && read.value(names.time_step_rank) != "auto") read.refuse(names.time_step_rank, "\"auto\" or a size");
  const int64_t automatic = (hidden_size + 15) / 16;
  shape.time_step_rank = is_word ? automatic : read.size(names.time_step_rank, automatic);
  shape.has_bias = read.flag(names.has_bias, false);
  shape.has_conv_bias = read.flag(names.has_conv_bias, true);
  return shape;
}

double count_elements(const MambaMixerShape& shape) {
  const auto H = static_cast<double>(shape.hidden_size), I = static_cast<double>(shape.intermediate_size),
             N = static_cast<double>(shape.state_size), R = static_cast<double>(shape.time_step_rank),
             K = static_cast<double>(shape.conv_kernel);
  return 3 * I * H + I * (2 * R + 4 * N + 2 * K + 8);
}

namespace {

void describe_headed(WeightTable& table, const std::string& prefix, const MambaMixerShape& shape) {
  const int64_t nh = shape.heads, width = shape.intermediate_size / nh, N = shape.state_size, R = shape.time_step_rank;
  // With few channels a head one large x makes B and C large too, and the scan goes with its cube: small B and C keep a
  // token from drowning the others' digits. dt gets back what it loses.
  table.push_back({prefix + "x_proj_weight", {nh, R + 2 * N, width}, Role::kXProj, width, {{0, nh, 0.5}}});
  table.push_back({prefix + "dt_proj_weight", {nh, width, R}, Role::kDtProj, R, {{0, nh, 2.0}}});
  table.push_back({prefix + "dt_proj_bias", {nh, width}, Role::kDtBias, 1, {}});
  // The original makes it a float32 parameter whatever the model's dtype, which the plain layout does not.
  table.push_back({prefix + "A_log", {nh, width, N}, Role::kALog, 1, {}, /*keeps_float32=*/true});
  table.push_back({prefix + "D", {nh, width}, Role::kSkip, 1, {}});
}

}  // namespace

void describe_weights(WeightTable& table, const std::string& prefix, const MambaMixerShape& shape) {
  const int64_t H = shape.hidden_size, I = shape.intermediate_size, N = shape.state_size, R = shape.time_step_rank;
  describe_linear(table, prefix + "in_proj", 2 * I, H, Role::kInProj, shape.has_bias);
  table.push_back({prefix + "conv1d.weight", {I, 1, shape.conv_kernel}, Role::kConv, shape.conv_kernel, {}});
  if (shape.has_conv_bias) table.push_back({prefix + "conv1d.bias", {I}, Role::kConvBias, 1, {}});
  if (shape.heads > 0) {
    describe_headed(table, prefix, shape);
  } else {
    // B and C multiply each other, dt_low goes through another projection: unlike scales keep all three visible.
    table.push_back({prefix + "x_proj.weight", {R + 2 * N, I}, Role::kXProj, I, {{0, R, 2.0}}});
    table.push_back({prefix + "dt_proj.weight", {I, R}, Role::kDtProj, R, {}});
    table.push_back({prefix + "dt_proj.bias", {I}, Role::kDtBias, 1, {}});
    table.push_back({prefix + "A_log", {I, N}, Role::kALog, 1, {}});
    table.push_back({prefix + "D", {I}, Role::kSkip, 1, {}});
  }
  describe_linear(table, prefix + "out_proj", H, I, Role::kOutProj, shape.has_bias, {{0, H, shape.out_scale}});
  if (shape.selection_norm != MambaMixerShape::SelectionNorm::kWeighted) return;
  table.push_back({prefix + "dt_layernorm.weight", {R}, Role::kNorm, 1, {}});
  // B and C of about 1 would make the scan tens of times what enters it, and every later number noise of its largest.
  table.push_back({prefix + "b_layernorm.weight", {N}, Role::kNorm, 1, {{0, N, 0.5}}});
  table.push_back({prefix + "c_layernorm.weight", {N}, Role::kNorm, 1, {{0, N, 0.5}}});
}

void describe_probes(ProbeTable& table, const std::string& probe, int64_t layer, const MambaMixerShape& shape) {
  const int64_t I = shape.intermediate_size, selected = shape.time_step_rank + 2 * shape.state_size, nh = shape.heads;
  const Shape channels = nh > 0 ? Shape{nh, I / nh} : Shape{I};
  table.add(probe + "in_proj", {2 * I}, "linear", layer);
  table.add(probe + "conv1d", {I}, "causal_conv1d", layer);
  if (nh > 0) {
    table.add(probe + "selection", {nh, 2 * shape.state_size}, "linear", layer);
  } else {
    table.add(probe + "x_proj", {selected}, "linear", layer);
    if (shape.selection_norm != MambaMixerShape::SelectionNorm::kNone)
      table.add(probe + "selection", {selected}, "rms_norm", layer);
  }
  table.add(probe + "dt", channels, "dt", layer);
  table.add(probe + "scan", channels, "selective_scan", layer);
  table.add(probe + "gate", {I}, "gate", layer);
  table.add(probe + "out_proj", {shape.hidden_size}, "linear", layer);
  table.add_state(probe + "conv_state", {I, shape.conv_kernel}, "causal_conv1d", layer);
  if (nh > 0)
    table.add_state(probe + "ssm_state", {nh, I / nh, shape.state_size}, "selective_scan", layer, nh);
  else
    table.add_state(probe + "ssm_state", {I, shape.state_size}, "selective_scan", layer);
}

}  // namespace assay
