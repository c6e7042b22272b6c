// l2norm: y = x / sqrt(sum(x^2) + epsilon), the sum over the last axis: unit length, where rms_norm makes unit mean
// square.
//
// in   x  [..., D]
// out  y  [..., D], 0 where x is 0
//
// source  models.md B6.1 step 6
#pragma once

#include <ATen/ATen.h>

namespace assay::reference {

at::Tensor l2norm(const at::Tensor& x, double epsilon);

}  // namespace assay::reference
