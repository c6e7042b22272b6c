// LFM2 (models.md M8): h += {short_conv | attention}(rms_norm(h));  h += feed_forward(rms_norm(h)), L times; then
// rms_norm and the head, the embedding where tied.
//
// mixer    in_proj -> B, C, x;  causal_conv1d(B * x), no activation;  gate with C;  out_proj
// attn     q and k normed head by head, rotary over whole heads, grouped-query attention
// ff       gated by silu; LFM2-MoE (M9): routed after the first layers
// state    a layer: conv, or key and value (reference/blocks/layer_state.hpp)
// probes   embed; layers.{l}.: norm, mixer.* or attn.*, mixed, ff_norm, ff.*, out; norm_f; logits
// weights  cases/spec/blocks/lfm2_backbone.cpp
#pragma once

#include <utility>

#include "cases/spec/models/lfm2.hpp"
#include "reference/models/network.hpp"

namespace assay::reference {

class Lfm2 : public Network {
 public:
  explicit Lfm2(const ModelConfig& config) : Lfm2(lfm2_fields(config)) {}
  std::vector<LayerState> initial_states(int64_t rows) const override;
  at::Tensor forward(const at::Tensor& ids, const WeightStore& weights, std::vector<LayerState>& states,
                     const Pass& pass) const override;
  int64_t vocabulary() const override { return fields_.vocab_size; }

 protected:
  explicit Lfm2(Lfm2Backbone fields) : fields_(std::move(fields)) {}

 private:
  Lfm2Backbone fields_;
};

}  // namespace assay::reference
