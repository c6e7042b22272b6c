#include "fast/blocks/short_conv.hpp"

#include "fast/blocks/gated_sequence_ops.hpp"

namespace assay::fast {

ShortConvWeights short_conv_weights(const Weights& weights, const std::string& prefix) {
  return {weights.at(prefix + "in_proj.weight"),  weights.optional(prefix + "in_proj.bias"),
          weights.at(prefix + "conv.weight"),     weights.optional(prefix + "conv.bias"),
          weights.at(prefix + "out_proj.weight"), weights.optional(prefix + "out_proj.bias")};
}

void short_conv(Pass& pass, const ShortConvShape& shape, const ShortConvWeights& weights, const std::string& probe,
                int64_t layer, const Matrix& input, const Matrix& output) {
  const LayerState state = pass.states[static_cast<size_t>(layer)];
  const int64_t width = shape.hidden_size;
  Scratch scratch(pass.scratch);

  mask_padding(pass, input);
  const Matrix projection = pass.buffer(3 * width, probe + "in_proj");
  project(pass, input, weights.in_proj, weights.in_proj_bias, projection);
  pass.probes.add(probe + "in_proj", projection);

  const Matrix gated = pass.buffer(width, probe + "gate");
  Matrix conv_probe;
  if (pass.probes.is_capturing()) conv_probe = pass.buffer(width, probe + "conv1d");
  ShortConvParams<float> p;
  p.gate_in = projection.data;
  p.gate_out = projection.slice(width, width).data;
  p.x = projection.slice(2 * width, width).data;
  p.stride = projection.stride;
  p.weight = weights.conv.f32();
  p.bias = weights.conv_bias.f32();
  p.initial_state = pass.is_warm ? state.conv : nullptr;
  p.mask = pass.mask;
  p.mask_stride = pass.mask_stride;
  p.y = gated.data;
  p.final_state = state.conv;
  p.conv_out = conv_probe.data;
  p.batch = pass.rows;
  p.length = pass.columns;
  p.channels = width;
  p.taps = shape.conv_kernel;
  run_short_conv(pass.context, pass.scratch, p, pass.forms.short_conv);
  pass.probes.add(probe + "conv1d", conv_probe);
  pass.probes.add(probe + "gate", gated);

  project(pass, gated, weights.out_proj, weights.out_proj_bias, output);
  pass.probes.add(probe + "out_proj", output);
  scratch.close();
}

}  // namespace assay::fast
