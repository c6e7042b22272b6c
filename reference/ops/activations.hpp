// silu(x) = x / (1 + e^-x);  softplus(x) = ln(1 + e^x), and x itself where x > 20 (models.md 1.3). Elementwise.
#pragma once

#include <ATen/ATen.h>

namespace assay::reference {

at::Tensor silu(const at::Tensor& x);
at::Tensor softplus(const at::Tensor& x);

}  // namespace assay::reference
