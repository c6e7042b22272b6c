#include "fast/blocks/pass.hpp"

#include "fast/kernels/elementwise.hpp"
#include "fast/kernels/linear_gemv.hpp"
#include "fast/kernels/scaled_add.hpp"

namespace assay::fast {

void project(Pass& pass, const Matrix& x, const Weight& weight, const Weight& bias, const Matrix& y, bool accumulate) {
  if (x.rows <= kGemvRows && weight.dtype == DType::kF32) {
    LinearGemvParams<float> p;
    p.x = x.data;
    p.x_stride = x.stride;
    p.weight = weight.f32();
    p.bias = bias ? bias.f32() : nullptr;
    p.y = y.data;
    p.y_stride = y.stride;
    p.rows = x.rows;
    p.in = weight.shape[1];
    p.out = weight.shape[0];
    p.accumulate = accumulate;
    linear_gemv(p, pass.context.stream());
    pass.context.record(linear_gemv_id(p));
    return;
  }
  LinearParams p;
  p.x = x.data;
  p.x_stride = x.stride;
  p.weight = weight.data;
  p.weight_dtype = weight.dtype;
  p.bias = bias ? bias.f32() : nullptr;
  p.y = y.data;
  p.y_stride = y.stride;
  p.rows = x.rows;
  p.in = weight.shape[1];
  p.out = weight.shape[0];
  p.accumulate = accumulate;
  pass.context.linear(p);
}

void mask_padding(Pass& pass, const Matrix& x) {
  if (pass.mask == nullptr) return;
  MaskRowsParams<float> p;
  p.x = x.data;
  p.y = x.data;
  p.mask = pass.mask;
  p.mask_stride = pass.mask_stride;
  p.batch = pass.rows;
  p.length = pass.columns;
  p.width = x.columns;
  mask_rows(p, pass.context.stream());
  pass.context.record(mask_rows_id(p));
}

namespace {

void run_scaled_add(Pass& pass, const Matrix& x, double scale, const float* residual, int64_t residual_stride,
                    const Matrix& y) {
  ScaledAddParams<float> p;
  p.x = x.data;
  p.x_stride = x.stride;
  p.residual = residual;
  p.residual_stride = residual_stride;
  p.y = y.data;
  p.y_stride = y.stride;
  p.rows = x.rows;
  p.width = x.columns;
  p.scale = static_cast<float>(scale);
  scaled_add(p, pass.context.stream());
  pass.context.record(scaled_add_id(p));
}

}  // namespace

void scale(Pass& pass, const Matrix& x, double scale, const Matrix& y) {
  run_scaled_add(pass, x, scale, nullptr, 0, y);
}

void add_scaled(Pass& pass, const Matrix& x, double scale, const Matrix& residual, const Matrix& y) {
  run_scaled_add(pass, x, scale, residual.data, residual.stride, y);
}

void add(Pass& pass, const Matrix& x, const Matrix& residual, const Matrix& y) {
  ResidualAddParams<float> p;
  p.x = x.data;
  p.residual = residual.data;
  p.y = y.data;
  p.count = x.rows * x.columns;
  residual_add(p, pass.context.stream());
  pass.context.record(residual_add_id(p));
}

}  // namespace assay::fast
