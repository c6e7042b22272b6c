// short_conv: the gated short convolution of LFM2 (models.md B5).
//
//     mask;  B, C, x = in_proj(h);  v = causal_conv1d(B * x), no activation;  out_proj(C * v)
//
// in/out  input   [T, H], dense; rows of padded columns are zeroed
//         states  conv of pass.states[layer]: the last K columns of B * x
// out     output  [T, H]
// probes  {probe}{in_proj, conv1d, gate, out_proj}; conv1d is an output of the fused kernel that only captured calls
//         write
// twin    reference/blocks/short_conv.hpp
#pragma once

#include <string>

#include "cases/spec/blocks/short_conv.hpp"
#include "fast/blocks/pass.hpp"
#include "fast/blocks/weights.hpp"

namespace assay::fast {

struct ShortConvWeights {
  Weight in_proj, in_proj_bias, conv, conv_bias, out_proj, out_proj_bias;
};

// prefix: "model.layers.3.conv."
ShortConvWeights short_conv_weights(const Weights& weights, const std::string& prefix);

// probe: "layers.3.mixer."
void short_conv(Pass& pass, const ShortConvShape& shape, const ShortConvWeights& weights, const std::string& probe,
                int64_t layer, const Matrix& input, const Matrix& output);

}  // namespace assay::fast
