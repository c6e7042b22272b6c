#include "fast/models/lfm2_network.hpp"

#include "fast/blocks/attention.hpp"
#include "fast/blocks/experts.hpp"
#include "fast/blocks/feed_forward.hpp"
#include "fast/blocks/residual_stream.hpp"
#include "fast/blocks/short_conv.hpp"
#include "fast/blocks/size_limits.hpp"
#include "fast/blocks/token_ends.hpp"

namespace assay::fast {

namespace {

class Lfm2Network : public Network {
 public:
  Lfm2Network(const Lfm2Backbone& fields, Weights& weights)
      : fields_(fields),
        ends_(token_ends(weights, "model.embed_tokens.weight")),
        norm_f_(weights.at("model.embedding_norm.weight")) {
    for (int64_t l = 0; l < fields_.layers(); ++l) {
      const std::string prefix = "model.layers." + std::to_string(l) + ".";
      Layer layer;
      layer.norm = weights.at(prefix + "operator_norm.weight");
      if (fields_.is_attention[static_cast<size_t>(l)])
        layer.attention = attention_weights(weights, prefix + "self_attn.", fields_.attention);
      else
        layer.conv = short_conv_weights(weights, prefix + "conv.");
      layer.ff_norm = weights.at(prefix + "ffn_norm.weight");
      if (fields_.is_routed(l))
        layer.experts = experts_weights(weights, prefix + "feed_forward.", fields_.experts);
      else
        layer.dense = feed_forward_weights(weights, prefix + "feed_forward.", fields_.dense);
      layers_.push_back(layer);
    }
  }

  int64_t vocabulary() const override { return fields_.vocab_size; }

  std::vector<LayerStateShape> state_shapes() const override {
    std::vector<LayerStateShape> states(layers_.size());
    for (size_t l = 0; l < states.size(); ++l)
      fields_.is_attention[l] ? add_state(states[l], fields_.attention) : add_state(states[l], fields_.conv);
    return states;
  }

  void forward(Pass& pass) const override {
    ResidualStream h(pass, embed(pass, ends_), {fields_.norm_eps});
    const Matrix x = pass.buffer(fields_.hidden_size, "block output");
    for (size_t l = 0; l < layers_.size(); ++l) {
      const Layer& layer = layers_[l];
      const auto index = static_cast<int64_t>(l);
      const std::string name = "layers." + std::to_string(l) + ".";

      const Matrix n = h.normed(layer.norm, name + "norm");
      if (fields_.is_attention[l])
        attention_block(pass, fields_.attention, layer.attention, name + "attn.", index, n, x);
      else
        short_conv(pass, fields_.conv, layer.conv, name + "mixer.", index, n, x);
      h.add(x, name + "mixed");

      const Matrix m = h.normed(layer.ff_norm, name + "ff_norm");
      if (fields_.is_routed(index))
        experts(pass, fields_.experts, layer.experts, name + "ff.", m, x);
      else
        feed_forward(pass, fields_.dense, layer.dense, name + "ff.", m, x);
      h.add(x, name + "out");
    }
    logits(pass, h.normed(norm_f_, "norm_f"), ends_);
  }

 private:
  struct Layer {
    Weight norm, ff_norm;
    AttentionWeights attention;
    ShortConvWeights conv;
    ExpertsWeights experts;
    FeedForwardWeights dense;
  };
  Lfm2Backbone fields_;
  TokenEnds ends_;
  Weight norm_f_;
  std::vector<Layer> layers_;
};

}  // namespace

std::unique_ptr<Network> make_lfm2_network(const Lfm2Backbone& fields, Weights& weights) {
  return std::make_unique<Lfm2Network>(fields, weights);
}

void check_lfm2_network(const std::string& config, const Lfm2Backbone& fields) {
  check_sizes(config, fields.conv);
  check_sizes(config, fields.attention);
  check_sizes(config, fields.experts);
}

}  // namespace assay::fast
