// QwenBackbone: what Qwen3-Next, Qwen3.5 and Qwen3.5-MoE share (models.md M11 to M13): shapes, tables and the rules of
// the fields that all three have. Every norm but the mixer's multiplies by 1 + weight.
//
//     h += mixer or attention (norm(h));  h += feed-forward part(norm(h));  then norm_f and the head
//
// mixer          gated delta rule (cases/spec/blocks/delta_mixer.hpp)
// attention      head norms, rotary on a part of a head, output gate (cases/spec/blocks/attention.hpp)
// feed-forward   dense, or routed experts and a shared expert times sigmoid(its gate)
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cases/spec/blocks/attention.hpp"
#include "cases/spec/blocks/delta_mixer.hpp"
#include "cases/spec/blocks/experts.hpp"
#include "cases/spec/blocks/feed_forward.hpp"
#include "cases/spec/models/fields.hpp"

namespace assay {

struct QwenBackbone {
  int64_t vocab_size = 0;   // V
  int64_t hidden_size = 0;  // H
  int64_t num_hidden_layers = 0;
  double rms_norm_eps = 0;  // of every norm
  bool tie_word_embeddings = false;
  std::string prefix = "model.";   // of every weight but the head
  std::vector<bool> is_attention;  // a layer: attention, or else the mixer
  std::vector<bool> is_routed;     // a layer: experts, or else dense
  DeltaMixerShape mixer;
  AttentionShape attention;
  FeedForwardShape dense;
  ExpertsShape experts;
  FeedForwardShape shared;  // shared_expert; its gate is shared_expert_gate [1, H]

  std::string embedding() const { return prefix + "embed_tokens.weight"; }
};

// The original's values of absent fields, where the families differ.
struct QwenDefaults {
  int64_t vocab_size, hidden_size, num_hidden_layers, num_key_value_heads;
  int64_t intermediate_size;                 // 0: no layer is dense
  int64_t num_experts, num_experts_per_tok;  // 0: no layer is routed
};

// Everything but is_routed, norm_topk_prob and the names, which each family sets. InputError naming the field: heads
// and key heads that do not divide, an odd rotated width, layer types unknown or of another number than the layers,
// more chosen experts than there are.
QwenBackbone read_qwen_backbone(const FieldReader& read, const QwenDefaults& defaults);

// Sizes that together are a lie (FieldReader::check_elements).
void check_elements(const FieldReader& read, const QwenBackbone& model);

WeightTable describe_weights(const QwenBackbone& model);
std::vector<ProbeSpec> describe_probes(const QwenBackbone& model);
std::vector<std::string> describe_ops(const QwenBackbone& model);

}  // namespace assay
