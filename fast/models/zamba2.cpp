// Zamba2 (models.md M15): Mamba-2 layers, some of them hybrid.
//
//     pure    h += mixer(rms_norm(h))
//     hybrid  h += mixer(rms_norm(h + T)), T = shared_transformer(h, e0), e0 the embedded tokens
//
// Hybrid layer number j calls block j mod num_mem_blocks with adapters number j. T enters the norm only, not the
// residual stream. Then rms_norm and the tied head.
#include "cases/spec/models/zamba2.hpp"

#include <optional>

#include "fast/blocks/mamba2_mixer.hpp"
#include "fast/blocks/residual_stream.hpp"
#include "fast/blocks/shared_transformer.hpp"
#include "fast/blocks/size_limits.hpp"
#include "fast/blocks/token_ends.hpp"
#include "fast/models/network.hpp"

namespace assay::fast {

std::unique_ptr<Network> make_zamba2(const ModelConfig& config, Weights& weights);
void check_zamba2(const ModelConfig& config);

namespace {

std::string prefix_of(int64_t layer) { return "model.layers." + std::to_string(layer) + "."; }

class Zamba2 : public Network {
 public:
  Zamba2(const Zamba2Fields& fields, Weights& weights)
      : fields_(fields),
        ends_(token_ends(weights, "model.embed_tokens.weight")),
        norm_f_(weights.at("model.final_layernorm.weight")) {
    for (int64_t l = 0; l < static_cast<int64_t>(fields_.is_hybrid.size()); ++l) {
      const bool is_hybrid = fields_.is_hybrid[static_cast<size_t>(l)];
      const std::string decoder = prefix_of(l) + (is_hybrid ? "mamba_decoder." : "");
      Layer layer;
      if (is_hybrid) {
        const int64_t ordinal = fields_.ordinal(l);
        const std::string block = prefix_of(fields_.first_layer_of_block(ordinal)) + "shared_transformer.";
        layer.shared = shared_transformer_weights(weights, block, prefix_of(l), fields_.shared, ordinal);
      }
      layer.norm = weights.at(decoder + "input_layernorm.weight");
      layer.mixer = mamba2_mixer_weights(weights, decoder + "mamba.", fields_.mixer);
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
    ResidualStream h(pass, embedded, {fields_.rms_norm_eps});
    const Matrix x = pass.buffer(embedded.columns, "block output"), T = pass.buffer(embedded.columns, "shared output");
    for (size_t l = 0; l < layers_.size(); ++l) {
      const Layer& layer = layers_[l];
      const auto index = static_cast<int64_t>(l);
      const std::string name = "layers." + std::to_string(l) + ".";
      if (layer.shared) shared_transformer(pass, fields_.shared, *layer.shared, name, index, h.values(), e0, T);
      const Matrix n = layer.shared ? h.normed_with(T, layer.norm, name + "norm") : h.normed(layer.norm, name + "norm");
      mamba2_mixer(pass, fields_.mixer, layer.mixer, name + "mixer.", index, n, x);
      h.add(x, name + "out");
    }
    logits(pass, h.normed(norm_f_, "norm_f"), ends_);
  }

 private:
  struct Layer {
    std::optional<SharedTransformerWeights> shared;  // of a hybrid layer
    Weight norm;
    Mamba2MixerWeights mixer;
  };
  Zamba2Fields fields_;
  TokenEnds ends_;
  Weight norm_f_;
  std::vector<Layer> layers_;
};

}  // namespace

std::unique_ptr<Network> make_zamba2(const ModelConfig& config, Weights& weights) {
  return std::make_unique<Zamba2>(zamba2_fields(config), weights);
}

void check_zamba2(const ModelConfig& config) {
  const Zamba2Fields fields = zamba2_fields(config);
  check_sizes(config.id(), fields.mixer);
  check_sizes(config.id(), fields.shared.attention);
}

}  // namespace assay::fast
