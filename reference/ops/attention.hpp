// attention: grouped-query causal attention over every column seen so far (models.md B8).
//
//     scores = scale * q k^T;  softmax over the keys that a query may see;  times v
//
// in   q     [B, nq, L, hd], the last L of T columns
//      k, v  [B, nkv, T, hd], T >= L; query head j reads head j / (nq / nkv)
//      mask  bool [B, T], false at padding; undefined = none
// out  y     [B, L, nq, hd]
//
// Query l (column T - L + l) sees columns up to its own that are not padding. A query that sees none (padding itself)
// averages every column, as the original's finite minimum makes it: nothing reads that row.
//
// requires  nq % nkv == 0
#pragma once

#include <ATen/ATen.h>

namespace assay::reference {

at::Tensor attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& mask,
                     double scale);

}  // namespace assay::reference
