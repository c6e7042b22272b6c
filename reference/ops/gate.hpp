// gate: y * silu(z), elementwise. y, z and the result have one shape.
#pragma once

#include <ATen/ATen.h>

namespace assay::reference {

at::Tensor gate(const at::Tensor& y, const at::Tensor& z);

}  // namespace assay::reference
