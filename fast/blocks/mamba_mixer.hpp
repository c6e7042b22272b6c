// Mamba-1 mixer (models.md B3), normed hidden states in, what is added to the residual stream out.
//
//     mask;  [x; z] = in_proj h;  x = silu(causal_conv1d(x)), mask;  [d; b; c] = x_proj x
//     y = selective_scan(x, softplus(dt_proj d + bias), -exp(A_log), b, c, D) * silu(z);  out_proj y
//
// in/out  input   [T, H], dense; rows of padded columns are zeroed
//         states  pass.states[layer], continued where the pass is warm, written where there is a cache
// out     output  [T, H]
// probes  layers.{l}.mixer.{in_proj, conv1d, x_proj, dt, scan, gate, out_proj}. dt and scan are by-products of the scan
//         kernel, written only when captured
// differs with a bias in in_proj its output is masked too: the original's window over the padding then holds the bias,
//         and a padded row is not what it is alone
#pragma once

#include "cases/spec/models/mamba.hpp"
#include "fast/blocks/pass.hpp"
#include "fast/blocks/weights.hpp"

namespace assay::fast {

struct MambaMixerWeights {
  Weight in_proj, in_proj_bias, conv1d, conv1d_bias, x_proj, dt_proj, dt_bias, skip, out_proj, out_proj_bias;
  const float* decay = nullptr;  // [I, N]
};

// prefix: "backbone.layers.3.mixer."
MambaMixerWeights mamba_mixer_weights(const Weights& weights, const std::string& prefix);

void mamba_mixer(Pass& pass, const MambaFields& fields, const MambaMixerWeights& weights, int64_t layer,
                 const Matrix& input, const Matrix& output);

}  // namespace assay::fast
