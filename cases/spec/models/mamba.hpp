// Mamba-1 (models.md M1, transformers 5.24.0 models/mamba): typed view of the config fields.
//
// h += mixer(rms_norm(h)), L times; then rms_norm and the head.
// mixer   in_proj -> x, z;  x -> causal_conv1d -> silu;  x_proj(x) -> dt_low, B, C;  dt = softplus(dt_proj(dt_low) +
// bias)
//         selective_scan(x, dt, A, B, C, D) * silu(z) -> out_proj
#pragma once

#include <cstdint>

#include "cases/spec/blocks/mamba_mixer.hpp"
#include "cases/spec/blocks/pure_backbone.hpp"
#include "cases/spec/model_config.hpp"

namespace assay {

struct MambaFields {
  int64_t vocab_size;         // V
  int64_t hidden_size;        // H
  int64_t intermediate_size;  // I = int(expand * H)
  int64_t state_size;         // N
  int64_t conv_kernel;        // K, 2 to 4
  int64_t time_step_rank;     // R; "auto" is ceil(H / 16)
  int64_t num_hidden_layers;
  double layer_norm_epsilon;
  bool use_bias;  // in_proj and out_proj
  bool use_conv_bias;
  bool tie_word_embeddings;

  PureBackbone backbone() const;
  MambaMixerShape mixer() const;
};

MambaFields mamba_fields(const ModelConfig& config);  // InputError naming file, pointer and what was expected

}  // namespace assay
