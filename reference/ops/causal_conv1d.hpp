// causal_conv1d: depthwise causal convolution, the last tap on the current input.
//
//     y[t] = act(bias + sum_j weight[j] * x[t-K+1+j]),  j = 0..K-1;  act is silu or nothing
//
// in   x              [B, L, C]
//      weight         [C, K]
//      bias           [C], or undefined
//      initial_state  [B, C, K], the K inputs before x[0], oldest first; undefined means zeros
//      mask           [B, L], 1 or 0, or undefined: y is 0 where the mask is 0 (its input is taken as it is)
// out  y              [B, L, C]
//      final_state    [B, C, K], the last K inputs, the current one included, oldest first
//
// Two factorings of the same sum. The sequence form adds K shifted copies of the whole sequence; the update form walks
// the columns, moving the window along by one and contracting it with the taps, as decoding does.
//
// source  models.md B2; the second mask of part 3.4
#pragma once

#include <ATen/ATen.h>

namespace assay::reference {

struct CausalConv1d {
  at::Tensor y;
  at::Tensor final_state;
};

CausalConv1d causal_conv1d(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                           const at::Tensor& initial_state, const at::Tensor& mask, bool has_silu);

CausalConv1d causal_conv1d_update(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                                  const at::Tensor& initial_state, const at::Tensor& mask, bool has_silu);

}  // namespace assay::reference
