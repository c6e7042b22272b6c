// The forward pass that the pure recurrent models share (mamba, mamba2, falcon_mamba), a network over their mixer:
//
//     h += mixer(rms_norm(h)), L times; then rms_norm and the head, the embedding where tied.
//
// state    a layer: what the mixer carries, zero before the first column (reference/blocks/layer_state.hpp)
// probes   embed; layers.{l}.: norm, mixer.*, out; norm_f; logits
// weights  cases/spec/blocks/pure_backbone.hpp
#pragma once

#include <string>
#include <vector>

#include "cases/spec/blocks/pure_backbone.hpp"
#include "reference/blocks/initial_state.hpp"
#include "reference/blocks/norm.hpp"
#include "reference/blocks/token_ends.hpp"
#include "reference/models/network.hpp"

namespace assay::reference {

// mixer(normed, place, shape, state, pass) -> [B, L, H]
template <class Shape, at::Tensor mixer(const at::Tensor&, const Place&, const Shape&, LayerState&, const Pass&)>
class PureNetwork : public Network {
 public:
  std::vector<LayerState> initial_states(int64_t rows) const override {
    std::vector<LayerState> states(static_cast<size_t>(model_.num_hidden_layers));
    for (LayerState& state : states) initial_state(state, rows, shape_);
    return states;
  }

  at::Tensor forward(const at::Tensor& ids, const WeightStore& weights, std::vector<LayerState>& states,
                     const Pass& pass) const override {
    at::Tensor h = embed(ids, weights, "backbone.embeddings.weight", pass);
    for (size_t l = 0; l < states.size(); ++l) {
      const std::string layer = "layers." + std::to_string(l) + ".";
      const Place place{weights, "backbone." + layer, layer};
      const Place inside{weights, place.prefix + "mixer.", place.probe + "mixer."};
      const at::Tensor normed = norm(h, place, "norm", "norm", epsilon_, pass);
      h = pass.keep(layer + "out", h + mixer(normed, inside, shape_, states[l], pass));
    }
    h = norm(h, {weights, "backbone.", ""}, "norm_f", "norm_f", epsilon_, pass);
    return logits(h, weights, model_.tie_word_embeddings ? "backbone.embeddings.weight" : "lm_head.weight", pass);
  }

  int64_t vocabulary() const override { return model_.vocab_size; }

 protected:
  // epsilon of the norms outside the mixer.
  PureNetwork(const PureBackbone& model, double epsilon, const Shape& shape)
      : model_(model), epsilon_(epsilon), shape_(shape) {}

 private:
  PureBackbone model_;
  double epsilon_;
  Shape shape_;
};

}  // namespace assay::reference
