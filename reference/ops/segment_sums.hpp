// segment_sums: the logarithm of the decay between every two columns of a chunk, shared by the chunked forms of ssd and
// gated_delta_rule.
//
//     s[i,j] = sum of a over (j, i] for j < i, and 0 elsewhere
//
// in   a  [B, heads, Q]
// out  s  [B, heads, Q, Q]
//
// numerics  each is a sum of its own: the difference of two running sums would lose the digits they share
// source    models.md B4.2
#pragma once

#include <ATen/ATen.h>

namespace assay::reference {

at::Tensor segment_sums(const at::Tensor& a);

}  // namespace assay::reference
