#include "fast/blocks/norm.hpp"

#include "fast/kernels/head_norm.hpp"
#include "fast/kernels/rms_norm.hpp"

namespace assay::fast {

namespace {

void run(Pass& pass, const float* x, const float* residual, float* sum, const Weight& weight, const NormKind& kind,
         const Matrix& y) {
  RmsNormParams<float> p;
  p.x = x;
  p.residual = residual;
  p.sum = sum;
  p.weight = weight.f32();
  p.y = y.data;
  p.rows = y.rows;
  p.width = y.columns;
  p.epsilon = static_cast<float>(kind.epsilon);
  p.is_zero_centred = kind.is_zero_centred;
  rms_norm(p, pass.context.stream());
  pass.context.record(rms_norm_id(p));
}

}  // namespace

void norm(Pass& pass, const Matrix& x, const Weight& weight, const NormKind& kind, const Matrix& y) {
  run(pass, x.data, nullptr, nullptr, weight, kind, y);
}

void add_and_norm(Pass& pass, const Matrix& x, const Matrix& residual, const Matrix& sum, const Weight& weight,
                  const NormKind& kind, const Matrix& y) {
  run(pass, x.data, residual.data, sum.data, weight, kind, y);
}

void norm_in_place(Pass& pass, const Matrix& x, const float* weight, const NormKind& kind) {
  HeadRmsNormParams<float> p;
  p.x = x.data;
  p.x_stride = x.stride;
  p.weight = weight;
  p.y = x.data;
  p.y_stride = x.stride;
  p.rows = x.rows;
  p.width = x.columns;
  p.epsilon = static_cast<float>(kind.epsilon);
  p.is_zero_centred = kind.is_zero_centred;
  head_rms_norm(p, pass.context.stream());
  pass.context.record(head_rms_norm_id(p));
}

}  // namespace assay::fast
