// Zamba (models.md M14): h += mixer(rms_norm(h)), and in a hybrid layer h += mixer(rms_norm(h + T)) with T from the
// shared transformer of h and the embedded tokens; then rms_norm and the embedding as the head. T does not enter the
// residual stream. The mixer is Mamba-1 by heads.
#include "cases/spec/models/zamba.hpp"

#include <optional>

#include "fast/blocks/mamba_mixer.hpp"
#include "fast/blocks/residual_stream.hpp"
#include "fast/blocks/shared_transformer.hpp"
#include "fast/blocks/size_limits.hpp"
#include "fast/blocks/token_ends.hpp"
#include "fast/models/network.hpp"

namespace assay::fast {

std::unique_ptr<Network> make_zamba(const ModelConfig& config, Weights& weights);
void check_zamba(const ModelConfig& config);

namespace {

class Zamba : public Network {
 public:
  Zamba(const ZambaFields& fields, Weights& weights)
      : fields_(fields),
        ends_(token_ends(weights, "model.embed_tokens.weight")),
        norm_f_(weights.at("model.final_layernorm.weight")) {
    for (int64_t l = 0; l < static_cast<int64_t>(fields_.layers.size()); ++l) {
      const std::string decoder = fields_.decoder(l);
      Layer layer;
      if (fields_.is_hybrid(l))
        layer.shared = shared_transformer_weights(weights, fields_.shared_prefix(),
                                                  "model.layers." + std::to_string(l) + ".", fields_.shared);
      layer.norm = weights.at(decoder + "input_layernorm.weight");
      layer.mixer = mamba_mixer_weights(weights, decoder + "mamba.", fields_.mixer);
      layers_.push_back(layer);
    }
  }

  int64_t vocabulary() const override { return fields_.vocab_size; }

  std::vector<LayerStateShape> state_shapes() const override {
    std::vector<LayerStateShape> states(layers_.size());
    for (size_t l = 0; l < states.size(); ++l) {
      add_state(states[l], fields_.mixer);
      if (layers_[l].shared) add_state(states[l], fields_.shared.attention);
    }
    return states;
  }

  void forward(Pass& pass) const override {
    const Matrix embedded = embed(pass, ends_), e0 = pass.buffer(embedded.columns, "embedded tokens");
    scale(pass, embedded, 1, e0);
    ResidualStream h(pass, embedded, {fields_.epsilon});
    const Matrix x = pass.buffer(embedded.columns, "block output"), T = pass.buffer(embedded.columns, "shared output");
    for (size_t l = 0; l < layers_.size(); ++l) {
      const Layer& layer = layers_[l];
      const auto index = static_cast<int64_t>(l);
      const std::string name = "layers." + std::to_string(l) + ".";
      if (layer.shared) shared_transformer(pass, fields_.shared, *layer.shared, name, index, h.values(), e0, T);
      const Matrix n = layer.shared ? h.normed_with(T, layer.norm, name + "norm") : h.normed(layer.norm, name + "norm");
      mamba_mixer(pass, fields_.mixer, layer.mixer, name + "mixer.", index, n, x);
      h.add(x, name + "out");
    }
    logits(pass, h.normed(norm_f_, "norm_f"), ends_);
  }

 private:
  struct Layer {
    std::optional<SharedTransformerWeights> shared;  // of a hybrid layer
    Weight norm;
    MambaMixerWeights mixer;
  };
  ZambaFields fields_;
  TokenEnds ends_;
  Weight norm_f_;
  std::vector<Layer> layers_;
};

}  // namespace

std::unique_ptr<Network> make_zamba(const ModelConfig& config, Weights& weights) {
  return std::make_unique<Zamba>(zamba_fields(config), weights);
}

void check_zamba(const ModelConfig& config) {
  const ZambaFields fields = zamba_fields(config);
  check_sizes(config.id(), fields.mixer);
  check_sizes(config.id(), fields.shared.attention);
}

}  // namespace assay::fast
