#include "fast/blocks/convolve.hpp"

namespace assay::fast {

void convolve(Pass& pass, const Matrix& x, const Weight& weight, const Weight& bias, float* state, const Matrix& y) {
  CausalConv1dParams<float> p;
  p.x = x.data;
  p.x_stride = x.stride;
  p.weight = weight.f32();
  p.bias = bias.f32();
  p.initial_state = pass.is_warm ? state : nullptr;
  p.mask = pass.mask;
  p.mask_stride = pass.mask_stride;
  p.y = y.data;
  p.final_state = state;
  p.batch = pass.rows;
  p.length = pass.columns;
  p.channels = x.columns;
  p.taps = weight.shape.back();
  run_causal_conv1d(pass.context, pass.scratch, p, pass.forms.causal_conv1d);
}

}  // namespace assay::fast
