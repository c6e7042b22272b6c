// Scalar functions, elementwise (models.md 1.3).
//
//     silu(x) = x / (1 + e^-x);  softplus(x) = ln(1 + e^x), and x itself where x > 20;  gelu(x) = x Phi(x), Phi by erf
//     relu2(x) = max(x, 0)^2
#pragma once

#include <ATen/ATen.h>

#include "cases/spec/blocks/feed_forward.hpp"

namespace assay::reference {

at::Tensor silu(const at::Tensor& x);
at::Tensor softplus(const at::Tensor& x);
at::Tensor gelu(const at::Tensor& x);
at::Tensor relu2(const at::Tensor& x);

at::Tensor activate(const at::Tensor& x, Activation activation);

}  // namespace assay::reference
