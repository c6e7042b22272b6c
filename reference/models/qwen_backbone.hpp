// The forward pass that Qwen3-Next, Qwen3.5 and Qwen3.5-MoE share (models.md M11 to M13).
//
//     h += mixer or attention (norm(h));  h += feed-forward part(norm(h));  then norm_f and the head
//
// norms    multiply by 1 + weight; the mixer's gated norm does not
// routed   experts(x) + sigmoid(shared_expert_gate(x)) * shared_expert(x)
// state    a layer: conv and delta, or key and value (reference/blocks/layer_state.hpp)
// probes   embed; layers.{l}.: norm, mixer.* or attn.*, mixed, ff_norm, ff.*, out; norm_f; logits
#pragma once

#include <utility>

#include "cases/spec/models/qwen_backbone.hpp"
#include "reference/models/network.hpp"
#include "reference/place.hpp"

namespace assay::reference {

class QwenNetwork : public Network {
 public:
  std::vector<LayerState> initial_states(int64_t rows) const override;
  at::Tensor forward(const at::Tensor& ids, const WeightStore& weights, std::vector<LayerState>& states,
                     const Pass& pass) const override;
  int64_t vocabulary() const override { return model_.vocab_size; }

 protected:
  explicit QwenNetwork(QwenBackbone model) : model_(std::move(model)) {}

 private:
  at::Tensor layer(const at::Tensor& h, size_t l, const Place& place, LayerState& state, const Pass& pass) const;
  at::Tensor routed(const at::Tensor& x, const Place& place, const Pass& pass) const;

  QwenBackbone model_;
};

}  // namespace assay::reference
