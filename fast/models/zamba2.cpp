// Zamba2 (models.md M15): Mamba-2 in every layer; hybrid layer number j calls block j mod num_mem_blocks, with adapters
// number j.
#include "cases/spec/models/zamba2.hpp"

#include "fast/blocks/mamba2_mixer.hpp"
#include "fast/blocks/size_limits.hpp"
#include "fast/models/shared_block_network.hpp"

namespace assay::fast {

std::unique_ptr<Network> make_zamba2(const ModelConfig& config, Weights& weights);
void check_zamba2(const ModelConfig& config);

namespace {

std::string prefix_of(int64_t layer) { return "model.layers." + std::to_string(layer) + "."; }

}  // namespace

std::unique_ptr<Network> make_zamba2(const ModelConfig& config, Weights& weights) {
  const Zamba2Fields fields = zamba2_fields(config);
  SharedBlockModel model{.vocabulary = fields.vocab_size, .epsilon = fields.rms_norm_eps, .shared = fields.shared};
  for (int64_t l = 0; l < static_cast<int64_t>(fields.is_hybrid.size()); ++l) {
    if (!fields.is_hybrid[static_cast<size_t>(l)]) {
      model.layers.push_back({prefix_of(l)});
      continue;
    }
    const int64_t ordinal = fields.ordinal(l);
    const std::string block = prefix_of(fields.first_layer_of_block(ordinal)) + "shared_transformer.";
    model.layers.push_back({prefix_of(l) + "mamba_decoder.", block, ordinal});
  }
  return make_shared_block_network<mamba2_mixer_weights, mamba2_mixer>(model, fields.mixer, weights);
}

void check_zamba2(const ModelConfig& config) {
  const Zamba2Fields fields = zamba2_fields(config);
  check_sizes(config.id(), fields.mixer);
  check_sizes(config.id(), fields.shared.attention);
}

}  // namespace assay::fast
