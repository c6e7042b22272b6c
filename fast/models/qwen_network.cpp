#include "fast/models/qwen_network.hpp"

#include "fast/blocks/attention.hpp"
#include "fast/blocks/delta_mixer.hpp"
#include "fast/blocks/experts.hpp"
#include "fast/blocks/feed_forward.hpp"
#include "fast/blocks/residual_stream.hpp"
#include "fast/blocks/size_limits.hpp"
#include "fast/blocks/token_ends.hpp"
#include "fast/kernels/shared_gate.hpp"

namespace assay::fast {

namespace {

class QwenNetwork : public Network {
 public:
  QwenNetwork(const QwenBackbone& fields, Weights& weights)
      : fields_(fields),
        ends_(token_ends(weights, fields.embedding())),
        norm_f_(weights.at(fields.prefix + "norm.weight")) {
    for (size_t l = 0; l < fields_.is_attention.size(); ++l) {
      const std::string prefix = fields_.prefix + "layers." + std::to_string(l) + ".", mlp = prefix + "mlp.";
      Layer layer;
      layer.norm = weights.at(prefix + "input_layernorm.weight");
      if (fields_.is_attention[l])
        layer.attention = attention_weights(weights, prefix + "self_attn.", fields_.attention);
      else
        layer.mixer = delta_mixer_weights(weights, prefix + "linear_attn.", fields_.mixer);
      layer.ff_norm = weights.at(prefix + "post_attention_layernorm.weight");
      if (fields_.is_routed[l]) {
        layer.experts = experts_weights(weights, mlp, fields_.experts);
        layer.feed_forward = feed_forward_weights(weights, mlp + "shared_expert.", fields_.shared);
        layer.shared_gate = weights.at(mlp + "shared_expert_gate.weight");
      } else {
        layer.feed_forward = feed_forward_weights(weights, mlp, fields_.dense);
      }
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
    ResidualStream h(pass, embed(pass, ends_), {fields_.rms_norm_eps, /*is_zero_centred=*/true});
    const Matrix x = pass.buffer(fields_.hidden_size, "block output");
    for (size_t l = 0; l < layers_.size(); ++l) {
      const Layer& layer = layers_[l];
      const auto index = static_cast<int64_t>(l);
      const std::string name = "layers." + std::to_string(l) + ".";

      const Matrix n = h.normed(layer.norm, name + "norm");
      if (fields_.is_attention[l])
        attention_block(pass, fields_.attention, layer.attention, name + "attn.", index, n, x);
      else
        delta_mixer(pass, fields_.mixer, layer.mixer, name + "mixer.", index, n, x);
      h.add(x, name + "mixed");

      const Matrix m = h.normed(layer.ff_norm, name + "ff_norm");
      if (fields_.is_routed[l])
        routed(pass, layer, name + "ff.", m, x);
      else
        feed_forward(pass, fields_.dense, layer.feed_forward, name + "ff.", m, x);
      h.add(x, name + "out");
    }
    logits(pass, h.normed(norm_f_, "norm_f"), ends_);
  }

 private:
  struct Layer {
    Weight norm, ff_norm;
    DeltaMixerWeights mixer;
    AttentionWeights attention;
    ExpertsWeights experts;
    FeedForwardWeights feed_forward;  // of the shared expert where the layer is routed
    Weight shared_gate;               // [1, H]
  };

  void routed(Pass& pass, const Layer& layer, const std::string& probe, const Matrix& input,
              const Matrix& output) const {
    Scratch scratch(pass.scratch);
    const Matrix common = pass.buffer(output.columns, probe + "shared"), gate = pass.buffer(1, probe + "shared.gate");
    experts(pass, fields_.experts, layer.experts, probe, input, output);
    feed_forward(pass, fields_.shared, layer.feed_forward, probe + "shared.", input, common);
    project(pass, input, layer.shared_gate, {}, gate);
    pass.probes.add(probe + "shared.gate", gate);

    SharedGateParams<float> p;
    p.x = common.data;
    p.gate = gate.data;
    p.gate_stride = gate.stride;
    p.residual = output.data;
    p.y = output.data;
    p.rows = output.rows;
    p.width = output.columns;
    shared_gate(p, pass.context.stream());
    pass.context.record(shared_gate_id(p));
    pass.probes.add(probe + "out", output);
    scratch.close();
  }

  QwenBackbone fields_;
  TokenEnds ends_;
  Weight norm_f_;
  std::vector<Layer> layers_;
};

}  // namespace

std::unique_ptr<Network> make_qwen_network(const QwenBackbone& fields, Weights& weights) {
  return std::make_unique<QwenNetwork>(fields, weights);
}

void check_qwen_network(const std::string& config, const QwenBackbone& fields) {
  check_sizes(config, fields.mixer);
  check_sizes(config, fields.attention);
  check_sizes(config, fields.experts);
}

}  // namespace assay::fast
