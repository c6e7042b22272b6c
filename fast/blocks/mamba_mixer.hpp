// Mamba-1 mixer and its variants (models.md B3), normed hidden states in, what is added to the residual stream out.
//
//     mask;  [x; z] = in_proj h;  x = silu(causal_conv1d(x)), mask;  [d; b; c] = x_proj x, each normed where the family
//     does;  y = selective_scan(x, softplus(dt_proj d + bias), -exp(A_log), b, c, D) * silu(z);  out_proj y
//
// With heads (zamba) in_proj's rows alternate x and z, and each block of I / nh channels selects with parameters of its
// own; the scan takes all heads at once, as groups of channels.
//
// in/out  input   [T, H], dense; rows of padded columns are zeroed
//         states  pass.states[layer], continued where the pass is warm, written where there is a cache
// out     output  [T, H]
// probes  {probe}{in_proj, conv1d, x_proj (without heads), selection (with norms or heads), dt, scan, gate, out_proj}.
// dt
//         and scan are by-products of the scan kernel, written only when captured
// differs with a bias in in_proj its output is masked too: the original's window over the padding then holds the bias,
//         and a padded row is not what it is alone
// twin    reference/blocks/mamba_mixer.hpp
#pragma once

#include <string>

#include "cases/spec/blocks/mamba_mixer.hpp"
#include "fast/blocks/pass.hpp"
#include "fast/blocks/weights.hpp"

namespace assay::fast {

struct MambaMixerWeights {
  Weight in_proj, in_proj_bias, conv1d, conv1d_bias, skip, out_proj, out_proj_bias;
  Weight x_proj, dt_proj, dt_bias;       // with heads [nh, ...], a head's behind the last one's
  const float* decay = nullptr;          // [I, N]
  const float* selection_norms[3] = {};  // of d, b, c; null: without weights
  const int32_t* x_before_z = nullptr;   // [2I]; with heads only
};

// prefix: "backbone.layers.3.mixer."
MambaMixerWeights mamba_mixer_weights(Weights& weights, const std::string& prefix, const MambaMixerShape& shape);

// probe: "layers.3.mixer."
void mamba_mixer(Pass& pass, const MambaMixerShape& shape, const MambaMixerWeights& weights, const std::string& probe,
                 int64_t layer, const Matrix& input, const Matrix& output);

}  // namespace assay::fast
