// Mamba-2 mixer (models.md B4), normed hidden states in, what is added to the residual stream out.
//
//     mask;  [z; xBC; dt] = in_proj h;  xBC = silu(causal_conv1d(xBC)), mask;  x, b, c = xBC
//     y = ssd(x, clamp(softplus(dt + dt_bias)), -exp(A_log), b, c, D);  out_proj(gated_rms_norm(y, z))
//
// in/out  input   [T, H], dense; rows of padded columns are zeroed
//         states  pass.states[layer], continued where the pass is warm, written where there is a cache
// out     output  [T, H]
// probes  layers.{l}.mixer.{in_proj, conv1d, dt, ssd, norm, out_proj}; dt is a by-product of the ssd kernels, written
//         only when captured
// differs with a bias in in_proj its output is masked too (mamba_mixer.hpp)
#pragma once

#include "cases/spec/models/mamba2.hpp"
#include "fast/blocks/pass.hpp"
#include "fast/blocks/weights.hpp"

namespace assay::fast {

struct Mamba2MixerWeights {
  Weight in_proj, in_proj_bias, conv1d, conv1d_bias, dt_bias, skip, norm, out_proj, out_proj_bias;
  const float* decay = nullptr;  // [Nh]
};

Mamba2MixerWeights mamba2_mixer_weights(const Weights& weights, const std::string& prefix);

void mamba2_mixer(Pass& pass, const Mamba2Fields& fields, const Mamba2MixerWeights& weights, int64_t layer,
                  const Matrix& input, const Matrix& output);

}  // namespace assay::fast
