// MixerState: what a state-space layer carries from call to call.
#pragma once

#include <ATen/ATen.h>

namespace assay::reference {

struct MixerState {
  at::Tensor conv;  // [B, C, K], C = I (mamba) or I + 2 G N (mamba2): the last K inputs of the convolution
  at::Tensor ssm;   // [B, I, N] (mamba) or [B, Nh, P, N] (mamba2)
};

}  // namespace assay::reference
