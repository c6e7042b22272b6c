// Nemotron-H (models.md M10 and part 11, transformers 5.24.0 models/nemotron_h): typed view of the config fields.
//
// One mixer a layer: h += {mamba2 | attention | feed_forward | experts + shared expert}(rms_norm(h)); then rms_norm and
// a head of its own (the original ties nothing).
//
// layers   hybrid_override_pattern, a letter each: M mamba2, * attention, - feed-forward, E experts; or a list,
//          layers_block_type or layer_types. Their number is the list's length.
// dt       profile dt_floor: time_step_min clamps to [time_step_min, inf), as the original's sequence form does; none
// to
//          time_step_limit, which the original does not read
#pragma once

#include <cstdint>
#include <vector>

#include "cases/spec/blocks/attention.hpp"
#include "cases/spec/blocks/experts.hpp"
#include "cases/spec/blocks/feed_forward.hpp"
#include "cases/spec/blocks/mamba2_mixer.hpp"
#include "cases/spec/model_config.hpp"

namespace assay {

struct NemotronHFields {
  enum class Layer { kMamba, kAttention, kFeedForward, kExperts };
  int64_t vocab_size;         // V
  int64_t hidden_size;        // H
  double layer_norm_epsilon;  // of every norm, the gated one included
  std::vector<Layer> layers;
  Mamba2MixerShape mixer;  // I = mamba_num_heads * mamba_head_dim, whatever expand says
  AttentionShape attention;
  FeedForwardShape feed_forward, shared;  // shared: the shared expert beside the routed ones
  ExpertsShape experts;
};

NemotronHFields nemotron_h_fields(const ModelConfig& config);

}  // namespace assay
