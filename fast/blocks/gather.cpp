#include "fast/blocks/gather.hpp"

#include "fast/kernels/gather_columns.hpp"

namespace assay::fast {

Matrix gather(Pass& pass, const Matrix& x, const int32_t* index, int64_t width) {
  const Matrix y = pass.buffer(width, "gathered columns");
  GatherColumnsParams<float> p;
  p.x = x.data;
  p.x_stride = x.stride;
  p.index = index;
  p.y = y.data;
  p.y_stride = y.stride;
  p.rows = x.rows;
  p.source_width = x.columns;
  p.width = width;
  gather_columns(p, pass.context.stream());
  pass.context.record(gather_columns_id(p));
  return y;
}

}  // namespace assay::fast
