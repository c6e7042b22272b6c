// Mamba-1: h += mixer(rms_norm(h)), L times; then rms_norm and the head (models.md M1).
#include "cases/spec/models/mamba.hpp"

#include "cases/spec/error.hpp"
#include "fast/blocks/backbone.hpp"
#include "fast/blocks/mamba_mixer.hpp"
#include "fast/models/network.hpp"

namespace assay::fast {

std::unique_ptr<Network> make_mamba(const ModelConfig& config, const Weights& weights);
void check_mamba(const ModelConfig& config);

namespace {

class Mamba : public Network {
 public:
  Mamba(const ModelConfig& config, const Weights& weights)
      : fields_(mamba_fields(config)), backbone_(backbone_weights(weights, fields_.num_hidden_layers)) {
    for (int64_t layer = 0; layer < fields_.num_hidden_layers; ++layer)
      mixers_.push_back(mamba_mixer_weights(weights, "backbone.layers." + std::to_string(layer) + ".mixer."));
  }
  int64_t vocabulary() const override { return fields_.vocab_size; }
  int64_t layers() const override { return fields_.num_hidden_layers; }
  LayerStateShape state_shape() const override {
    return {{fields_.intermediate_size, fields_.conv_kernel}, {fields_.intermediate_size, fields_.state_size}};
  }
  std::string scan_op() const override { return "selective_scan"; }
  void forward(Pass& pass) const override {
    run_backbone(pass, backbone_, fields_.layer_norm_epsilon,
                 [this](Pass& p, int64_t layer, const Matrix& input, const Matrix& output) {
                   mamba_mixer(p, fields_, mixers_[static_cast<size_t>(layer)], layer, input, output);
                 });
  }

 private:
  MambaFields fields_;
  BackboneWeights backbone_;
  std::vector<MambaMixerWeights> mixers_;
};

}  // namespace

std::unique_ptr<Network> make_mamba(const ModelConfig& config, const Weights& weights) {
  return std::make_unique<Mamba>(config, weights);
}

void check_mamba(const ModelConfig& config) {
  const MambaFields fields = mamba_fields(config);
  if (fields.state_size > 256)
    throw UnsupportedError(config.id(),
                           "state_size " + std::to_string(fields.state_size) + "; selective_scan takes 1 to 256");
  if (fields.conv_kernel > 4)
    throw UnsupportedError(config.id(),
                           "conv_kernel " + std::to_string(fields.conv_kernel) + "; causal_conv1d takes 1 to 4");
}

}  // namespace assay::fast
