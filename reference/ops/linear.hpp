// linear: y = x weight^T + bias, on the last axis.
//
// in   x       [..., in]
//      weight  [out, in]
//      bias    [out], or undefined
// out  y       [..., out]
#pragma once

#include <ATen/ATen.h>

namespace assay::reference {

at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias = {});

}  // namespace assay::reference
