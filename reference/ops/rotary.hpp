// rotary: rotates pairs of lanes of each head by its position (models.md B7).
//
//     angle[i] = position * f[i], one float32 product;  lanes i and i + width/2 of the first `width` form a pair
//
// in   x          [B, heads, L, hd]
//      positions  int64 [B, L]
// out  y          [B, heads, L, hd], lanes from width on unchanged
//
// source  Su et al. 2021; transformers 5.24.0 modeling_rope_utils for the scalings (linear, yarn, llama3)
#pragma once

#include <ATen/ATen.h>

#include "cases/spec/blocks/rotary.hpp"

namespace assay::reference {

// f [width / 2] in float32, after the shape's scaling.
at::Tensor inverse_frequencies(const RotaryShape& shape);

at::Tensor rotary(const at::Tensor& x, const at::Tensor& positions, const RotaryShape& shape);

}  // namespace assay::reference
