// embedding: y[b,l] = weight[ids[b,l]], a row lookup.
//
// in   ids     [B, L]  int64, each in [0, V)
//      weight  [V, H]
// out  y       [B, L, H]
#pragma once

#include <ATen/ATen.h>

namespace assay::reference {

at::Tensor embedding(const at::Tensor& ids, const at::Tensor& weight);

}  // namespace assay::reference
