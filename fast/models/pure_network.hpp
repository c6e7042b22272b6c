// PureNetwork: the forward pass that the pure recurrent models share (mamba, mamba2, falcon_mamba), over their mixer.
//
//     h += mixer(rms_norm(h)), L times; then rms_norm and the head (fast/blocks/backbone.hpp)
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cases/spec/blocks/pure_backbone.hpp"
#include "fast/blocks/backbone.hpp"
#include "fast/models/network.hpp"

namespace assay::fast {

// read(weights, prefix, shape) -> MixerWeights; mixer(pass, shape, weights, probe, layer, input, output)
template <class Shape, class MixerWeights,
          void mixer(Pass&, const Shape&, const MixerWeights&, const std::string&, int64_t, const Matrix&,
                     const Matrix&)>
class PureNetwork : public Network {
 public:
  // epsilon: of the norms outside the mixer.
  PureNetwork(const PureBackbone& model, double epsilon, const Shape& shape, std::vector<MixerWeights> mixers,
              const Weights& weights)
      : model_(model),
        epsilon_(epsilon),
        shape_(shape),
        backbone_(backbone_weights(weights, model.num_hidden_layers)),
        mixers_(std::move(mixers)) {}

  int64_t vocabulary() const override { return model_.vocab_size; }
  std::vector<LayerStateShape> state_shapes() const override {
    LayerStateShape state;
    add_state(state, shape_);
    return std::vector<LayerStateShape>(mixers_.size(), state);
  }
  void forward(Pass& pass) const override {
    run_backbone(pass, backbone_, epsilon_, [this](Pass& p, int64_t layer, const Matrix& input, const Matrix& output) {
      mixer(p, shape_, mixers_[static_cast<size_t>(layer)], "layers." + std::to_string(layer) + ".mixer.", layer, input,
            output);
    });
  }

 private:
  PureBackbone model_;
  double epsilon_;
  Shape shape_;
  BackboneWeights backbone_;
  std::vector<MixerWeights> mixers_;
};

template <auto read, auto mixer, class Shape>
std::unique_ptr<Network> make_pure_network(const PureBackbone& model, double epsilon, const Shape& shape,
                                           Weights& weights) {
  using MixerWeights = decltype(read(weights, std::string(), shape));
  std::vector<MixerWeights> mixers;
  for (int64_t layer = 0; layer < model.num_hidden_layers; ++layer)
    mixers.push_back(read(weights, "backbone.layers." + std::to_string(layer) + ".mixer.", shape));
  return std::make_unique<PureNetwork<Shape, MixerWeights, mixer>>(model, epsilon, shape, std::move(mixers), weights);
}

}  // namespace assay::fast
