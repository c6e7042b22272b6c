// ShortConvShape: the gated short convolution of LFM2 (models.md B5).
//
//     B, C, x = in_proj(h);  v = causal_conv1d(B * x), no activation;  out_proj(C * v)
//
// weights  in_proj [3H, H], conv [H, 1, K], out_proj [H, H]; one flag gives all three a bias
// probes   in_proj [3H], conv1d [H], gate [H] = C * v, out_proj [H]; state conv_state [H, K] of B * x
#pragma once

#include "cases/spec/blocks/tables.hpp"

namespace assay {

struct ShortConvShape {
  int64_t hidden_size = 0;  // H
  int64_t conv_kernel = 0;  // K
  bool has_bias = false;
  double out_scale = 1;  // of synthetic out_proj rows: larger where a tied head favours a token's own embedding
};

void describe_weights(WeightTable& table, const std::string& prefix, const ShortConvShape& shape);
void describe_probes(ProbeTable& table, const std::string& probe, int64_t layer, const ShortConvShape& shape);

}  // namespace assay
