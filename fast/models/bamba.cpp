// Bamba (models.md M4): Mamba-2 layers, some of them attention layers, each followed by a SwiGLU.
//
//     h += {mamba2_mixer | attention}(rms_norm(h));  h += feed_forward(rms_norm(h));  L times; rms_norm; head
#include "cases/spec/models/bamba.hpp"

#include "fast/blocks/attention.hpp"
#include "fast/blocks/feed_forward.hpp"
#include "fast/blocks/mamba2_mixer.hpp"
#include "fast/blocks/residual_stream.hpp"
#include "fast/blocks/size_limits.hpp"
#include "fast/blocks/token_ends.hpp"
#include "fast/models/network.hpp"

namespace assay::fast {

std::unique_ptr<Network> make_bamba(const ModelConfig& config, Weights& weights);
void check_bamba(const ModelConfig& config);

namespace {

class Bamba : public Network {
 public:
  Bamba(const BambaFields& fields, Weights& weights)
      : fields_(fields),
        ends_(token_ends(weights, "model.embed_tokens.weight")),
        norm_f_(weights.at("model.final_layernorm.weight")) {
    for (size_t l = 0; l < fields_.is_attention.size(); ++l) {
      const std::string prefix = "model.layers." + std::to_string(l) + ".";
      Layer layer;
      layer.norm = weights.at(prefix + "input_layernorm.weight");
      if (fields_.is_attention[l])
        layer.attention = attention_weights(weights, prefix + "self_attn.", fields_.attention);
      else
        layer.mixer = mamba2_mixer_weights(weights, prefix + "mamba.", fields_.mixer);
      layer.ff_norm = weights.at(prefix + "pre_ff_layernorm.weight");
      layer.feed_forward = feed_forward_weights(weights, prefix + "feed_forward.", fields_.feed_forward);
      layers_.push_back(layer);
    }
  }

  int64_t vocabulary() const override { return fields_.vocab_size; }

  std::vector<LayerStateShape> state_shapes() const override {
    std::vector<LayerStateShape> states(layers_.size());
    for (size_t l = 0; l < states.size(); ++l)
      fields_.is_attention[l] ? add_state(states[l], fields_.attention) : add_state(states[l], fields_.mixer);
    return states;
  }

  void forward(Pass& pass) const override {
    ResidualStream h(pass, embed(pass, ends_), {fields_.rms_norm_eps});
    const Matrix x = pass.buffer(fields_.hidden_size, "block output");
    for (size_t l = 0; l < layers_.size(); ++l) {
      const Layer& layer = layers_[l];
      const auto index = static_cast<int64_t>(l);
      const std::string name = "layers." + std::to_string(l) + ".";

      const Matrix n = h.normed(layer.norm, name + "norm");
      if (fields_.is_attention[l])
        attention_block(pass, fields_.attention, layer.attention, name + "attn.", index, n, x);
      else
        mamba2_mixer(pass, fields_.mixer, layer.mixer, name + "mixer.", index, n, x);
      h.add(x, name + "mixed");

      const Matrix m = h.normed(layer.ff_norm, name + "ff_norm");
      feed_forward(pass, fields_.feed_forward, layer.feed_forward, name + "ff.", m, x);
      h.add(x, name + "out");
    }
    logits(pass, h.normed(norm_f_, "norm_f"), ends_);
  }

 private:
  struct Layer {
    Weight norm, ff_norm;
    Mamba2MixerWeights mixer;
    AttentionWeights attention;
    FeedForwardWeights feed_forward;
  };
  BambaFields fields_;
  TokenEnds ends_;
  Weight norm_f_;
  std::vector<Layer> layers_;
};

}  // namespace

std::unique_ptr<Network> make_bamba(const ModelConfig& config, Weights& weights) {
  return std::make_unique<Bamba>(bamba_fields(config), weights);
}

void check_bamba(const ModelConfig& config) {
  const BambaFields fields = bamba_fields(config);
  check_sizes(config.id(), fields.mixer);
  check_sizes(config.id(), fields.attention);
}

}  // namespace assay::fast
