// GraniteMoeHybrid (models.md M6 and part 11, transformers 5.24.0 models/granitemoehybrid): typed view of the config
// fields.
//
// h = embedding * embedding_multiplier;  h += residual_multiplier * {mamba2 mixer | attention}(rms_norm(h))
// h += residual_multiplier * (experts(n) + shared swiglu(n)), n = rms_norm(h);  L times; rms_norm; head /
// logits_scaling Without experts (num_local_experts 0) the shared part stands alone.
#pragma once

#include <cstdint>
#include <vector>

#include "cases/spec/blocks/attention.hpp"
#include "cases/spec/blocks/experts.hpp"
#include "cases/spec/blocks/feed_forward.hpp"
#include "cases/spec/blocks/mamba2_mixer.hpp"
#include "cases/spec/model_config.hpp"

namespace assay {

struct GraniteMoeHybridFields {
  int64_t vocab_size;   // V
  int64_t hidden_size;  // H
  double rms_norm_eps;  // of every norm, the gated one included
  double embedding_multiplier, residual_multiplier;
  double logits_scaling;  // divides
  bool tie_word_embeddings;
  std::vector<bool> is_attention;  // one entry a layer
  Mamba2MixerShape mixer;
  AttentionShape attention;  // scale is attention_multiplier
  ExpertsShape experts;      // count 0: none
  FeedForwardShape shared;

  bool has_experts() const { return experts.count > 0; }
};

GraniteMoeHybridFields granitemoehybrid_fields(const ModelConfig& config);

}  // namespace assay
