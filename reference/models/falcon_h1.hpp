// Falcon-H1 (models.md M5): a Mamba-2 mixer and attention side by side in every layer, then a feed-forward part.
//
//     n = rms_norm(h);  h += mixer(n) * ssm_out + attention(n * attention_in) * attention_out
//     h += feed_forward(rms_norm(h))
//
// ends     embedded tokens * embedding_multiplier; logits * lm_head_multiplier; the head is the embedding where tied
// state    a layer: conv and ssm, key and value (reference/blocks/layer_state.hpp)
// probes   embed; layers.{l}.: norm, mixer.*, attn.*, mixed, ff_norm, ff.*, out; norm_f; logits. Those of mixer and
//          attn end before ssm_out and attention_out: the two multipliers show in mixed
// weights  cases/spec/models/falcon_h1.cpp
#pragma once

#include "cases/spec/models/falcon_h1.hpp"
#include "reference/models/network.hpp"
#include "reference/place.hpp"

namespace assay::reference {

class FalconH1 final : public Network {
 public:
  explicit FalconH1(const ModelConfig& config) : fields_(falcon_h1_fields(config)) {}
  std::vector<LayerState> initial_states(int64_t rows) const override;
  at::Tensor forward(const at::Tensor& ids, const WeightStore& weights, std::vector<LayerState>& states,
                     const Pass& pass) const override;
  int64_t vocabulary() const override { return fields_.vocab_size; }

 private:
  at::Tensor layer(const at::Tensor& h, const Place& place, LayerState& state, const Pass& pass) const;

  FalconH1Fields fields_;
};

}  // namespace assay::reference
