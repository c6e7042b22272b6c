// Zamba (models.md M14): Mamba-1 by heads in every layer; one shared transformer, stored at the first hybrid layer.
#include "cases/spec/models/zamba.hpp"

#include "fast/blocks/mamba_mixer.hpp"
#include "fast/blocks/size_limits.hpp"
#include "fast/models/shared_block_network.hpp"

namespace assay::fast {

std::unique_ptr<Network> make_zamba(const ModelConfig& config, Weights& weights);
void check_zamba(const ModelConfig& config);

std::unique_ptr<Network> make_zamba(const ModelConfig& config, Weights& weights) {
  const ZambaFields fields = zamba_fields(config);
  SharedBlockModel model{.vocabulary = fields.vocab_size, .epsilon = fields.epsilon, .shared = fields.shared};
  for (int64_t l = 0; l < static_cast<int64_t>(fields.layers.size()); ++l)
    model.layers.push_back({fields.decoder(l), fields.is_hybrid(l) ? fields.shared_prefix() : ""});
  return make_shared_block_network<mamba_mixer_weights, mamba_mixer>(model, fields.mixer, weights);
}

void check_zamba(const ModelConfig& config) {
  const ZambaFields fields = zamba_fields(config);
  check_sizes(config.id(), fields.mixer);
  check_sizes(config.id(), fields.shared.attention);
}

}  // namespace assay::fast
