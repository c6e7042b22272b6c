// Falcon-H1 (models.md M5): a Mamba-2 mixer and attention side by side in every layer, then a feed-forward part.
//
//     n = rms_norm(h);  h += mixer(n) * ssm_out + attention(n * attention_in) * attention_out
//     h += feed_forward(rms_norm(h))
//
// Embedded tokens times embedding_multiplier; logits times lm_head_multiplier.
#include "cases/spec/models/falcon_h1.hpp"

#include "fast/blocks/attention.hpp"
#include "fast/blocks/feed_forward.hpp"
#include "fast/blocks/mamba2_mixer.hpp"
#include "fast/blocks/residual_stream.hpp"
#include "fast/blocks/size_limits.hpp"
#include "fast/blocks/token_ends.hpp"
#include "fast/models/network.hpp"

namespace assay::fast {

std::unique_ptr<Network> make_falcon_h1(const ModelConfig& config, Weights& weights);
void check_falcon_h1(const ModelConfig& config);

namespace {

class FalconH1 : public Network {
 public:
  FalconH1(const FalconH1Fields& fields, Weights& weights)
      : fields_(fields),
        ends_(token_ends(weights, "model.embed_tokens.weight")),
        norm_f_(weights.at("model.final_layernorm.weight")) {
    for (int64_t l = 0; l < fields_.num_hidden_layers; ++l) {
      const std::string prefix = "model.layers." + std::to_string(l) + ".";
      layers_.push_back({weights.at(prefix + "input_layernorm.weight"), weights.at(prefix + "pre_ff_layernorm.weight"),
                         mamba2_mixer_weights(weights, prefix + "mamba.", fields_.mixer),
                         attention_weights(weights, prefix + "self_attn.", fields_.attention),
                         feed_forward_weights(weights, prefix + "feed_forward.", fields_.feed_forward)});
    }
  }

  int64_t vocabulary() const override { return fields_.vocab_size; }

  std::vector<LayerStateShape> state_shapes() const override {
    LayerStateShape state;
    add_state(state, fields_.mixer);
    add_state(state, fields_.attention);
    return std::vector<LayerStateShape>(layers_.size(), state);
  }

  void forward(Pass& pass) const override {
    ResidualStream h(pass, embed(pass, ends_, fields_.embedding_multiplier), {fields_.rms_norm_eps});
    const int64_t width = fields_.hidden_size;
    const Matrix x = pass.buffer(width, "block output"), attention_in = pass.buffer(width, "attention input"),
                 attended = pass.buffer(width, "attention output");
    for (size_t l = 0; l < layers_.size(); ++l) {
      const Layer& layer = layers_[l];
      const auto index = static_cast<int64_t>(l);
      const std::string name = "layers." + std::to_string(l) + ".";

      const Matrix n = h.normed(layer.norm, name + "norm");
      // Before the mixer zeroes the padded rows of n.
      scale(pass, n, fields_.attention_in_multiplier, attention_in);
      mamba2_mixer(pass, fields_.mixer, layer.mixer, name + "mixer.", index, n, x);
      if (fields_.ssm_out_multiplier != 1) scale(pass, x, fields_.ssm_out_multiplier, x);
      attention_block(pass, fields_.attention, layer.attention, name + "attn.", index, attention_in, attended);
      add_scaled(pass, attended, fields_.attention_out_multiplier, x, x);
      h.add(x, name + "mixed");

      const Matrix m = h.normed(layer.ff_norm, name + "ff_norm");
      feed_forward(pass, fields_.feed_forward, layer.feed_forward, name + "ff.", m, x);
      h.add(x, name + "out");
    }
    logits(pass, h.normed(norm_f_, "norm_f"), ends_, fields_.lm_head_multiplier);
  }

 private:
  struct Layer {
    Weight norm, ff_norm;
    Mamba2MixerWeights mixer;
    AttentionWeights attention;
    FeedForwardWeights feed_forward;
  };
  FalconH1Fields fields_;
  TokenEnds ends_;
  Weight norm_f_;
  std::vector<Layer> layers_;
};

}  // namespace

std::unique_ptr<Network> make_falcon_h1(const ModelConfig& config, Weights& weights) {
  return std::make_unique<FalconH1>(falcon_h1_fields(config), weights);
}

void check_falcon_h1(const ModelConfig& config) {
  const FalconH1Fields fields = falcon_h1_fields(config);
  check_sizes(config.id(), fields.mixer);
  check_sizes(config.id(), fields.attention);
}

}  // namespace assay::fast
