// dt: the step size of a state-space layer, dt = clamp(softplus(raw + bias), dt_min, dt_max).
//
// in   raw   [..., I] (Mamba-1: a channel) or [..., Nh] (Mamba-2: a head)
//      bias  [I] or [Nh]
// out  dt    as raw
//
// requires  dt_min <= dt_max; [0, infinity] does not limit
// source    models.md B3.1 step 7 (no limits), B4.1 step 5: bias, softplus, clamp, each once and in this order
#pragma once

#include <ATen/ATen.h>

#include <limits>

namespace assay::reference {

at::Tensor dt(const at::Tensor& raw, const at::Tensor& bias, double dt_min = 0,
              double dt_max = std::numeric_limits<double>::infinity());

}  // namespace assay::reference
