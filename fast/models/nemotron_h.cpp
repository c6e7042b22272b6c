// Nemotron-H (models.md M10): one mixer a layer, h += mixer(rms_norm(h)); then rms_norm and a head of its own.
//
// mixer    Mamba-2, grouped-query attention without positions, feed-forward (squared ReLU), or routed experts and a
//          shared one beside them
#include "cases/spec/models/nemotron_h.hpp"

#include "fast/blocks/attention.hpp"
#include "fast/blocks/experts.hpp"
#include "fast/blocks/feed_forward.hpp"
#include "fast/blocks/mamba2_mixer.hpp"
#include "fast/blocks/residual_stream.hpp"
#include "fast/blocks/size_limits.hpp"
#include "fast/blocks/token_ends.hpp"
#include "fast/models/network.hpp"

namespace assay::fast {

std::unique_ptr<Network> make_nemotron_h(const ModelConfig& config, Weights& weights);
void check_nemotron_h(const ModelConfig& config);

namespace {

using Kind = NemotronHFields::Layer;

class NemotronH : public Network {
 public:
  NemotronH(const NemotronHFields& fields, Weights& weights)
      : fields_(fields),
        ends_(token_ends(weights, "backbone.embeddings.weight")),
        norm_f_(weights.at("backbone.norm_f.weight")) {
    for (size_t l = 0; l < fields_.layers.size(); ++l) {
      const std::string prefix = "backbone.layers." + std::to_string(l) + ".", mixer = prefix + "mixer.";
      Layer layer;
      layer.norm = weights.at(prefix + "norm.weight");
      switch (fields_.layers[l]) {
        case Kind::kMamba:
          layer.mixer = mamba2_mixer_weights(weights, mixer, fields_.mixer);
          break;
        case Kind::kAttention:
          layer.attention = attention_weights(weights, mixer, fields_.attention);
          break;
        case Kind::kFeedForward:
          layer.feed_forward = feed_forward_weights(weights, mixer, fields_.feed_forward);
          break;
        case Kind::kExperts:
          layer.experts = experts_weights(weights, mixer, fields_.experts);
          layer.feed_forward = feed_forward_weights(weights, mixer + "shared_experts.", fields_.shared);
          break;
      }
      layers_.push_back(layer);
    }
  }

  int64_t vocabulary() const override { return fields_.vocab_size; }

  std::vector<LayerStateShape> state_shapes() const override {
    std::vector<LayerStateShape> states(layers_.size());
    for (size_t l = 0; l < states.size(); ++l) {
      if (fields_.layers[l] == Kind::kMamba) add_state(states[l], fields_.mixer);
      if (fields_.layers[l] == Kind::kAttention) add_state(states[l], fields_.attention);
    }
    return states;
  }

  void forward(Pass& pass) const override {
    ResidualStream h(pass, embed(pass, ends_), {fields_.layer_norm_epsilon});
    const Matrix x = pass.buffer(fields_.hidden_size, "block output");
    for (size_t l = 0; l < layers_.size(); ++l) {
      const std::string name = "layers." + std::to_string(l) + ".";
      mix(pass, l, name, h.normed(layers_[l].norm, name + "norm"), x);
      h.add(x, name + "out");
    }
    logits(pass, h.normed(norm_f_, "norm_f"), ends_);
  }

 private:
  struct Layer {
    Weight norm;
    Mamba2MixerWeights mixer;
    AttentionWeights attention;
    ExpertsWeights experts;
    FeedForwardWeights feed_forward;  // of the shared expert where the layer is routed
  };

  void mix(Pass& pass, size_t l, const std::string& name, const Matrix& n, const Matrix& x) const {
    const Layer& layer = layers_[l];
    const auto index = static_cast<int64_t>(l);
    switch (fields_.layers[l]) {
      case Kind::kMamba:
        return mamba2_mixer(pass, fields_.mixer, layer.mixer, name + "mixer.", index, n, x);
      case Kind::kAttention:
        return attention_block(pass, fields_.attention, layer.attention, name + "attn.", index, n, x);
      case Kind::kFeedForward:
        return feed_forward(pass, fields_.feed_forward, layer.feed_forward, name + "ff.", n, x);
      case Kind::kExperts: {
        Scratch scratch(pass.scratch);
        const Matrix routed = pass.buffer(fields_.hidden_size, "experts output");
        experts(pass, fields_.experts, layer.experts, name + "ff.", n, routed);
        feed_forward(pass, fields_.shared, layer.feed_forward, name + "ff.shared.", n, x);
        add(pass, x, routed, x);
        pass.probes.add(name + "ff.out", x);
        scratch.close();
      }
    }
  }

  NemotronHFields fields_;
  TokenEnds ends_;
  Weight norm_f_;
  std::vector<Layer> layers_;
};

}  // namespace

std::unique_ptr<Network> make_nemotron_h(const ModelConfig& config, Weights& weights) {
  return std::make_unique<NemotronH>(nemotron_h_fields(config), weights);
}

void check_nemotron_h(const ModelConfig& config) {
  const NemotronHFields fields = nemotron_h_fields(config);
  check_sizes(config.id(), fields.mixer);
  check_sizes(config.id(), fields.attention);
  check_sizes(config.id(), fields.experts);
}

}  // namespace assay::fast
