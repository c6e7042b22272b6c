// The tables of LFM2 and LFM2-MoE (models.md M8, M9): both have one backbone and differ in the feed-forward parts.
//
// h += {short_conv | attention}(operator_norm(h));  h += {dense | experts}(ffn_norm(h)), L times; then embedding_norm,
// which is the final norm despite its name, and the head: the embedding where tied.
//
// Names: model.{embed_tokens, layers.{l}.{operator_norm, conv.* | self_attn.*, ffn_norm, feed_forward.*},
// embedding_norm}, lm_head unless tied.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cases/spec/blocks/attention.hpp"
#include "cases/spec/blocks/experts.hpp"
#include "cases/spec/blocks/feed_forward.hpp"
#include "cases/spec/blocks/short_conv.hpp"
#include "cases/spec/blocks/tables.hpp"
#include "cases/spec/models/fields.hpp"

namespace assay {

struct Lfm2Backbone {
  int64_t vocab_size = 0;   // V
  int64_t hidden_size = 0;  // H
  double norm_eps = 0;      // of every norm, those of the heads included
  bool tie_word_embeddings = true;
  std::vector<bool> is_attention;  // layer by layer; the others are short convolutions
  int64_t dense_layers = 0;        // the first ones; those after them are routed
  AttentionShape attention;
  ShortConvShape conv;
  FeedForwardShape dense;
  ExpertsShape experts;

  int64_t layers() const { return static_cast<int64_t>(is_attention.size()); }
  bool is_routed(int64_t layer) const { return layer >= dense_layers; }
};

// Everything but the feed-forward parts; the families' defaults are the same but for H. Layer kinds from layer_types
// or, where has_indices and there is none, from full_attn_idxs, without which every layer is attention.
Lfm2Backbone read_lfm2_backbone(const FieldReader& read, int64_t default_hidden_size, bool has_indices);
// Sizes that make sense together, and fields that change nothing and must not say otherwise.
void check_lfm2_backbone(const FieldReader& read, const Lfm2Backbone& model);

WeightTable lfm2_weights(const Lfm2Backbone& model);
std::vector<ProbeSpec> lfm2_probes(const Lfm2Backbone& model);
std::vector<std::string> lfm2_ops(const Lfm2Backbone& model);

}  // namespace assay
