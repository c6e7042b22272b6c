// SharedBlockNetwork: the forward pass that zamba and zamba2 share, over their mixer.
//
//     recurrent layer  h += mixer(rms_norm(h))
//     hybrid layer     h += mixer(rms_norm(h + T)), T = shared_transformer(h, e0), e0 the embedded tokens
//
// then rms_norm and the head. T joins the norm only, not the residual stream.
//
// probes  embed; layers.{l}.: those of shared_transformer (hybrid), norm, mixer.*, out; norm_f; logits (always)
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fast/blocks/residual_stream.hpp"
#include "fast/blocks/shared_transformer.hpp"
#include "fast/blocks/token_ends.hpp"
#include "fast/models/network.hpp"

namespace assay::fast {

struct SharedBlockLayer {
  std::string decoder;  // prefix of the mixer and its norm: "model.layers.3.", deeper in a hybrid layer
  std::string block;    // prefix of the transformer it calls: "model.layers.2.shared_transf."; empty: recurrent
  int64_t ordinal = 0;  // of the call site, where the transformer has adapters
};

struct SharedBlockModel {
  int64_t vocabulary = 0;  // V
  double epsilon = 0;      // of the norms outside mixer and transformer
  SharedTransformerShape shared;
  std::vector<SharedBlockLayer> layers;
};

// mixer(pass, shape, weights, probe, layer, input, output)
template <class Shape, class MixerWeights,
          void mixer(Pass&, const Shape&, const MixerWeights&, const std::string&, int64_t, const Matrix&,
                     const Matrix&)>
class SharedBlockNetwork : public Network {
 public:
  struct Layer {
    std::optional<SharedTransformerWeights> shared;  // of a hybrid layer
    Weight norm;
    MixerWeights mixer_weights;
  };

  SharedBlockNetwork(const SharedBlockModel& model, const Shape& shape, std::vector<Layer> layers,
                     const Weights& weights)
      : vocabulary_(model.vocabulary),
        epsilon_(model.epsilon),
        shared_(model.shared),
        shape_(shape),
        ends_(token_ends(weights, "model.embed_tokens.weight")),
        norm_f_(weights.at("model.final_layernorm.weight")),
        layers_(std::move(layers)) {}

  int64_t vocabulary() const override { return vocabulary_; }

  std::vector<LayerStateShape> state_shapes() const override {
    std::vector<LayerStateShape> states(layers_.size());
    for (size_t l = 0; l < states.size(); ++l) {
      add_state(states[l], shape_);
      if (layers_[l].shared) add_state(states[l], shared_.attention);
    }
    return states;
  }

  void forward(Pass& pass) const override {
    const Matrix embedded = embed(pass, ends_), e0 = pass.buffer(embedded.columns, "embedded tokens");
    scale(pass, embedded, 1, e0);
    ResidualStream h(pass, embedded, {epsilon_});
    const Matrix x = pass.buffer(embedded.columns, "block output"), T = pass.buffer(embedded.columns, "shared output");
    for (size_t l = 0; l < layers_.size(); ++l) {
      const Layer& layer = layers_[l];
      const auto index = static_cast<int64_t>(l);
      const std::string name = "layers." + std::to_string(l) + ".";
      if (layer.shared) shared_transformer(pass, shared_, *layer.shared, name, index, h.values(), e0, T);
      const Matrix n = layer.shared ? h.normed_with(T, layer.norm, name + "norm") : h.normed(layer.norm, name + "norm");
      mixer(pass, shape_, layer.mixer_weights, name + "mixer.", index, n, x);
      h.add(x, name + "out");
    }
    logits(pass, h.normed(norm_f_, "norm_f"), ends_);
  }

 private:
  int64_t vocabulary_;
  double epsilon_;
  SharedTransformerShape shared_;
  Shape shape_;
  TokenEnds ends_;
  Weight norm_f_;
  std::vector<Layer> layers_;
};

// read(weights, prefix, shape) -> MixerWeights
template <auto read, auto mixer, class Shape>
std::unique_ptr<Network> make_shared_block_network(const SharedBlockModel& model, const Shape& shape,
                                                   Weights& weights) {
  using MixerWeights = decltype(read(weights, std::string(), shape));
  using SharedBlock = SharedBlockNetwork<Shape, MixerWeights, mixer>;
  std::vector<typename SharedBlock::Layer> layers;
  for (const SharedBlockLayer& names : model.layers) {
    const std::string site = "model.layers." + std::to_string(layers.size()) + ".";
    typename SharedBlock::Layer layer;
    if (!names.block.empty())
      layer.shared = shared_transformer_weights(weights, names.block, site, model.shared, names.ordinal);
    layer.norm = weights.at(names.decoder + "input_layernorm.weight");
    layer.mixer_weights = read(weights, names.decoder + "mamba.", shape);
    layers.push_back(layer);
  }
  return std::make_unique<SharedBlock>(model, shape, std::move(layers), weights);
}

}  // namespace assay::fast
