// convolve: the causal convolution of a mixer, with silu, in the form that the pass asks for; 0 at padded columns.
//
// in      x  [T, C], rows of padded columns already 0
// in/out  state  [B, C, K], continued where the pass is warm, written where it is not null
// out     y  [T, C], dense
// twin    reference/blocks/convolve.hpp
#pragma once

#include "fast/blocks/pass.hpp"

namespace assay::fast {

void convolve(Pass& pass, const Matrix& x, const Weight& weight, const Weight& bias, float* state, const Matrix& y);

}  // namespace assay::fast
