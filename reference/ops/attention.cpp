#include "reference/ops/attention.hpp"

#include <limits>

namespace assay::reference {

at::Tensor attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& mask,
                     double scale) {
  const int64_t length = q.size(2), columns = k.size(2), shared_by = q.size(1) / k.size(1);
  const at::Tensor keys = k.repeat_interleave(shared_by, 1), values = v.repeat_interleave(shared_by, 1);
  const at::Tensor query_column = at::arange(columns - length, columns, at::kLong).unsqueeze(1);
  at::Tensor visible = (at::arange(columns, at::kLong).unsqueeze(0) <= query_column).view({1, 1, length, columns});
  if (mask.defined()) visible = visible.logical_and(mask.view({mask.size(0), 1, 1, columns}));

  const at::Tensor scores = at::matmul(q, keys.transpose(2, 3)) * scale;
  const at::Tensor seen = scores.masked_fill(visible.logical_not(), std::numeric_limits<float>::lowest());
  return at::matmul(at::softmax(seen, -1), values).transpose(1, 2);
}

}  // namespace assay::reference
