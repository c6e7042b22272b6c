// Mamba-2 (models.md M2 and part 11, transformers 5.24.0 models/mamba2): typed view of the config fields.
//
// h += mixer(rms_norm(h)), L times; then rms_norm and the head.
// mixer   in_proj -> z [I], xBC [I + 2 G N], dt [Nh];  xBC -> causal_conv1d -> silu -> x, B, C
//         dt = clamp(softplus(dt + dt_bias), limits);  ssd(x, dt, A, B, C, D);  gate first, grouped RMS norm;  out_proj
#pragma once

#include <cstdint>

#include "cases/spec/blocks/mamba2_mixer.hpp"
#include "cases/spec/blocks/pure_backbone.hpp"
#include "cases/spec/model_config.hpp"

namespace assay {

struct Mamba2Fields {
  int64_t vocab_size;         // V
  int64_t hidden_size;        // H
  int64_t intermediate_size;  // I = int(expand * H) = num_heads * head_dim
  int64_t state_size;         // N
  int64_t conv_kernel;        // K, 2 to 4
  int64_t num_heads;          // Nh
  int64_t head_dim;           // P
  int64_t n_groups;           // G; head h reads group h / (Nh / G)
  int64_t chunk_size;         // Q
  int64_t num_hidden_layers;
  double layer_norm_epsilon;
  double dt_min, dt_max;  // time_step_limit; [0, inf] when absent
  bool use_bias;          // in_proj and out_proj
  bool use_conv_bias;
  bool tie_word_embeddings;
  int64_t conv_dim() const { return intermediate_size + 2 * n_groups * state_size; }
  PureBackbone backbone() const;
  Mamba2MixerShape mixer() const;
};

Mamba2Fields mamba2_fields(const ModelConfig& config);

}  // namespace assay
