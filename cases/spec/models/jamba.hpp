// Jamba (models.md M7, transformers 5.24.0 models/jamba): typed view of the config fields.
//
// h += mixer or attention(rms_norm(h));  h += dense or routed feed-forward(rms_norm(h)), L times; rms_norm, head.
// mixer      Mamba-1 whose dt_low, B and C each pass a norm with weights
// attention  grouped-query, without positions
// router     softmax over all experts, the k largest, not renormalised
#pragma once

#include <cstdint>
#include <vector>

#include "cases/spec/blocks/attention.hpp"
#include "cases/spec/blocks/experts.hpp"
#include "cases/spec/blocks/feed_forward.hpp"
#include "cases/spec/blocks/mamba_mixer.hpp"
#include "cases/spec/model_config.hpp"

namespace assay {

struct JambaLayer {
  bool is_attention;  // l % attn_layer_period == attn_layer_offset, else recurrent
  bool is_routed;     // l % expert_layer_period == expert_layer_offset and more than one expert, else dense
};

struct JambaFields {
  int64_t vocab_size;   // V
  int64_t hidden_size;  // H
  double epsilon;       // of every norm
  bool tie_word_embeddings;
  std::vector<JambaLayer> layers;
  MambaMixerShape mixer;
  AttentionShape attention;
  FeedForwardShape feed_forward;
  ExpertsShape experts;
};

JambaFields jamba_fields(const ModelConfig& config);  // InputError naming the field

}  // namespace assay
