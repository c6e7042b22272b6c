// rms_norm: y = weight * x / sqrt(mean(x^2) + epsilon), the mean over the last axis.
//
// in   x       [..., H]
//      weight  [H]
// out  y       [..., H]
//
// source  models.md B1, N-std
#pragma once

#include <ATen/ATen.h>

namespace assay::reference {

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double epsilon);

}  // namespace assay::reference
