// Mamba-2: h += mixer(rms_norm(h)), L times; then rms_norm and the head (models.md M2).
#include "cases/spec/models/mamba2.hpp"

#include "cases/spec/error.hpp"
#include "fast/blocks/backbone.hpp"
#include "fast/blocks/mamba2_mixer.hpp"
#include "fast/models/network.hpp"

namespace assay::fast {

std::unique_ptr<Network> make_mamba2(const ModelConfig& config, const Weights& weights);
void check_mamba2(const ModelConfig& config);

namespace {

class Mamba2 : public Network {
 public:
  Mamba2(const ModelConfig& config, const Weights& weights)
      : fields_(mamba2_fields(config)), backbone_(backbone_weights(weights, fields_.num_hidden_layers)) {
    for (int64_t layer = 0; layer < fields_.num_hidden_layers; ++layer)
      mixers_.push_back(mamba2_mixer_weights(weights, "backbone.layers." + std::to_string(layer) + ".mixer."));
  }
  int64_t vocabulary() const override { return fields_.vocab_size; }
  int64_t layers() const override { return fields_.num_hidden_layers; }
  LayerStateShape state_shape() const override {
    return {{fields_.conv_dim(), fields_.conv_kernel}, {fields_.num_heads, fields_.head_dim, fields_.state_size}};
  }
  std::string scan_op() const override { return "ssd"; }
  void forward(Pass& pass) const override {
    run_backbone(pass, backbone_, fields_.layer_norm_epsilon,
                 [this](Pass& p, int64_t layer, const Matrix& input, const Matrix& output) {
                   mamba2_mixer(p, fields_, mixers_[static_cast<size_t>(layer)], layer, input, output);
                 });
  }

 private:
  Mamba2Fields fields_;
  BackboneWeights backbone_;
  std::vector<Mamba2MixerWeights> mixers_;
};

}  // namespace

std::unique_ptr<Network> make_mamba2(const ModelConfig& config, const Weights& weights) {
  return std::make_unique<Mamba2>(config, weights);
}

void check_mamba2(const ModelConfig& config) {
  const Mamba2Fields fields = mamba2_fields(config);
  if (fields.conv_kernel > 4)
    throw UnsupportedError(config.id(),
                           "conv_kernel " + std::to_string(fields.conv_kernel) + "; causal_conv1d takes 1 to 4");
}

}  // namespace assay::fast
