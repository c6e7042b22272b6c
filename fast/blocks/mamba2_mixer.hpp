// Mamba-2 mixer (models.md B4), normed hidden states in, what is added to the residual stream out.
//
//     mask;  [z; xBC; dt] = multipliers * in_proj(in_multiplier * h);  xBC = silu(causal_conv1d(xBC)), mask;
//     x, b, c = xBC;  y = ssd(x, clamp(softplus(dt + dt_bias)), -exp(A_log), b, c, D)
//     out_proj(y gated by z and normed, as shape.gate says)
//
// in/out  input   [T, H], dense; rows of padded columns are zeroed
//         states  pass.states[layer], continued where the pass is warm, written where there is a cache
// out     output  [T, H]
// probes  {probe}{in_proj, conv1d, dt, ssd, norm (gate where there is no norm), out_proj}; dt is a by-product of the
// ssd
//         kernels, written only when captured
// differs with a bias in in_proj its output is masked too (mamba_mixer.hpp)
// twin    reference/blocks/mamba2_mixer.hpp
#pragma once

#include <string>

#include "cases/spec/blocks/mamba2_mixer.hpp"
#include "fast/blocks/pass.hpp"
#include "fast/blocks/weights.hpp"

namespace assay::fast {

struct Mamba2MixerWeights {
  Weight in_proj, in_proj_bias, conv1d, conv1d_bias, dt_bias, skip, norm, out_proj, out_proj_bias;
  const float* decay = nullptr;  // [Nh]
};

// prefix: "backbone.layers.3.mixer."
Mamba2MixerWeights mamba2_mixer_weights(Weights& weights, const std::string& prefix, const Mamba2MixerShape& shape);

// probe: "layers.3.mixer."
void mamba2_mixer(Pass& pass, const Mamba2MixerShape& shape, const Mamba2MixerWeights& weights,
                  const std::string& probe, int64_t layer, const Matrix& input, const Matrix& output);

}  // namespace assay::fast
