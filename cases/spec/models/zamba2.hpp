// Zamba2 (models.md M15 and part 11, transformers 5.24.0 models/zamba2): typed view of the config fields.
//
// Mamba-2 layers, h += mixer(rms_norm(h)); some are hybrid, h += mixer(rms_norm(h + T)), T from a shared transformer
// block over [h ; e0] and the layer's own projection. num_mem_blocks blocks take turns: hybrid layer number j (its
// ordinal, not its index among all layers) calls block j mod num_mem_blocks with adapters of its own, those of number
// j.
#pragma once

#include <cstdint>
#include <vector>

#include "cases/spec/blocks/mamba2_mixer.hpp"
#include "cases/spec/blocks/shared_transformer.hpp"
#include "cases/spec/model_config.hpp"

namespace assay {

struct Zamba2Fields {
  int64_t vocab_size;           // V
  int64_t hidden_size;          // H
  double rms_norm_eps;          // of every norm but the gated one, whose epsilon is 1e-5 whatever the config says
  std::vector<bool> is_hybrid;  // one a layer
  std::vector<int64_t> hybrid;  // indices of the hybrid layers; an ordinal is a place in this list
  int64_t num_mem_blocks;       // a block's weights stand under the first layer that calls it
  Mamba2MixerShape mixer;       // dt_min by the profile's dt_floor
  SharedTransformerShape shared;

  int64_t ordinal(int64_t layer) const;                 // of a hybrid layer
  int64_t first_layer_of_block(int64_t ordinal) const;  // the block that this ordinal calls
};

Zamba2Fields zamba2_fields(const ModelConfig& config);

}  // namespace assay
