// Zamba (models.md M14, B12, transformers 5.24.0 models/zamba): typed view of the config fields.
//
// recurrent layer  h += mixer(rms_norm(h))
// hybrid layer     h += mixer(rms_norm(h + T)), T the shared transformer of h and the embedded tokens
// then rms_norm and the head, which is the embedding.
//
// mixer       Mamba-1 by heads: after the convolution each block of channels selects and scans with its own parameters
// attention   over both inputs, without positions; scale (hd / 2)^-1/2
// One transformer block serves every hybrid layer and is stored at the first.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cases/spec/blocks/mamba_mixer.hpp"
#include "cases/spec/blocks/shared_transformer.hpp"
#include "cases/spec/model_config.hpp"

namespace assay {

struct ZambaFields {
  enum class Layer { kRecurrent, kHybrid };
  int64_t vocab_size;   // V
  int64_t hidden_size;  // H
  double epsilon;       // of every norm
  std::vector<Layer> layers;
  MambaMixerShape mixer;
  SharedTransformerShape shared;

  bool is_hybrid(int64_t layer) const { return layers[static_cast<size_t>(layer)] == Layer::kHybrid; }
  // Where a layer's own weights are: the mixer and its norm lie deeper in a hybrid layer.
  std::string decoder(int64_t layer) const;
  // "model.layers.2.shared_transf.", 2 being the first hybrid layer.
  std::string shared_prefix() const;
};

ZambaFields zamba_fields(const ModelConfig& config);  // InputError naming the field

}  // namespace assay
