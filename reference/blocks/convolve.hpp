// convolve: the convolution of a mixer in the form that the pass asks for, with both masks, and silu unless has_silu is
// false, carrying state.conv.
//
// in   x       [B, L, C], not yet masked
//      weight  [C, 1, K] as stored;  bias [C], or undefined
// out          [B, L, C], 0 at masked columns
//
// The input is masked here although the mixer's input already was: a bias of in_proj makes padded columns non-zero
// after it, and in the convolution's window they would reach the first real columns. The original lets them, so that a
// padded row differs from the same row alone (models.md part 3.4, part 11).
#pragma once

#include <ATen/ATen.h>

#include "reference/blocks/layer_state.hpp"
#include "reference/pass.hpp"

namespace assay::reference {

at::Tensor convolve(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, LayerState& state,
                    const Pass& pass, bool has_silu = true);

}  // namespace assay::reference
