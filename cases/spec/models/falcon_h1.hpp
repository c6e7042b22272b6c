// Falcon-H1 (models.md M5 and part 11, transformers 5.24.0 models/falcon_h1): typed view of the config fields.
//
// Every layer: n = rms_norm(h);  h += mixer(n) * ssm_out + attention(n * attention_in) * attention_out;
//              h += feed_forward(rms_norm(h))
// embedded tokens * embedding_multiplier;  logits * lm_head_multiplier
// mixer   Mamba-2 with multipliers on its input and on the parts of its projection; after the scan a norm by group
//         before or after the gate (mamba_rms_norm), or the gate alone
#pragma once

#include <cstdint>

#include "cases/spec/blocks/attention.hpp"
#include "cases/spec/blocks/feed_forward.hpp"
#include "cases/spec/blocks/mamba2_mixer.hpp"
#include "cases/spec/model_config.hpp"

namespace assay {

struct FalconH1Fields {
  int64_t vocab_size;   // V
  int64_t hidden_size;  // H
  int64_t num_hidden_layers;
  double rms_norm_eps;  // of every norm, the gated one included
  bool tie_word_embeddings;
  double embedding_multiplier, lm_head_multiplier;
  double ssm_out_multiplier, attention_in_multiplier, attention_out_multiplier;
  Mamba2MixerShape mixer;  // I = mamba_d_ssm, which expand * H need not equal
  AttentionShape attention;
  FeedForwardShape feed_forward;
};

FalconH1Fields falcon_h1_fields(const ModelConfig& config);

}  // namespace assay
