// attention_block: projections, head norms, rotary, cache, attention, output gate, output projection (models.md B8).
//
// in      input   [T, in_width], normed
// in/out  states  key and value of pass.states[layer], longer by L columns; without a cache they are scratch
// out     output  [T, H]
// probes  {probe}{q, k, v, attention, gated (with an output gate), out_proj}
// forms   attention_prefill or attention_decode, by the number of columns unless the pass says which
// twin    reference/blocks/attention.hpp
#pragma once

#include <cstdint>
#include <string>

#include "cases/spec/blocks/attention.hpp"
#include "fast/blocks/adapter.hpp"
#include "fast/blocks/pass.hpp"
#include "fast/blocks/weights.hpp"

namespace assay::fast {

struct AttentionWeights {
  Weight q, q_bias, k, k_bias, v, v_bias, out, out_bias;
  Weight q_norm, k_norm;  // [hd]
  Adapter q_adapter, k_adapter, v_adapter;
  const float* frequencies = nullptr;  // [R / 2]; null: no rotation
};

// prefix: "model.layers.3.self_attn."; adapter: ordinal of the call site, where the shape has adapters.
AttentionWeights attention_weights(Weights& weights, const std::string& prefix, const AttentionShape& shape,
                                   int64_t adapter = 0);

// probe: "layers.3.attn."
void attention_block(Pass& pass, const AttentionShape& shape, const AttentionWeights& weights, const std::string& probe,
                     int64_t layer, const Matrix& input, const Matrix& output);

}  // namespace assay::fast
