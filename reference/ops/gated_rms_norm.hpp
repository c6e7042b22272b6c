// gated_rms_norm  u = x * silu(z);  y = weight * u / sqrt(mean(u^2) + epsilon): gate first
// rms_norm_gated  y = weight * x / sqrt(mean(x^2) + epsilon) * silu(z): norm first
//
// The mean is taken inside each of `groups` blocks of I / groups neighbouring channels.
//
// in   x, z    [..., I]
//      weight  [I]
// out  y       [..., I]
//
// requires  I % groups == 0
// source    models.md B1, N-gate-1st-G (what transformers 5.24.0 does in mamba2, part 11) and N-gate-last-G
#pragma once

#include <ATen/ATen.h>

namespace assay::reference {

at::Tensor gated_rms_norm(const at::Tensor& x, const at::Tensor& z, const at::Tensor& weight, int64_t groups,
                          double epsilon);

at::Tensor rms_norm_gated(const at::Tensor& x, const at::Tensor& z, const at::Tensor& weight, int64_t groups,
                          double epsilon);

}  // namespace assay::reference
