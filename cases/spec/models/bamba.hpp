// Bamba (models.md M4 and part 11, transformers 5.24.0 models/bamba): typed view of the config fields.
//
// h += {mamba2 mixer | attention}(rms_norm(h));  h += swiglu(rms_norm(h));  L times; then rms_norm and the head.
// The rotary part of a head: partial_rotary_factor of rope_parameters, and 0.5 where it has none; a factor at the top
// level of the config is not followed.
#pragma once

#include <cstdint>
#include <vector>

#include "cases/spec/blocks/attention.hpp"
#include "cases/spec/blocks/feed_forward.hpp"
#include "cases/spec/blocks/mamba2_mixer.hpp"
#include "cases/spec/model_config.hpp"

namespace assay {

struct BambaFields {
  int64_t vocab_size;   // V
  int64_t hidden_size;  // H
  double rms_norm_eps;  // of every norm, the gated one included
  bool tie_word_embeddings;
  std::vector<bool> is_attention;  // one entry a layer: it is in attn_layer_indices
  Mamba2MixerShape mixer;
  AttentionShape attention;
  FeedForwardShape feed_forward;
};

BambaFields bamba_fields(const ModelConfig& config);

}  // namespace assay
