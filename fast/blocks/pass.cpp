#include "fast/blocks/pass.hpp"

#include "fast/kernels/elementwise.hpp"

namespace assay::fast {

void Probes::add_always(const std::string& name, const Matrix& values, Shape inner) {
  Shape shape = {rows_, columns_};
  if (inner.empty()) inner = {values.columns};
  shape.insert(shape.end(), inner.begin(), inner.end());
  probes_.push_back({name, download(values, std::move(shape), name, stream_)});
}

void project(Pass& pass, const Matrix& x, const Weight& weight, const Weight& bias, const Matrix& y) {
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
  pass.context.linear(p);
}

void mask_padding(Pass& pass, const Matrix& x) {
  if (pass.mask == nullptr) return;
  MaskRowsParams<float> p;
  p.x = x.data;
  p.y = x.data;
  p.mask = pass.mask;
  p.mask_stride = pass.columns;
  p.batch = pass.rows;
  p.length = pass.columns;
  p.width = x.columns;
  mask_rows(p, pass.context.stream());
  pass.context.record(mask_rows_id(p));
}

}  // namespace assay::fast
