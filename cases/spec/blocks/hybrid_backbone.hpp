// The tables of a hybrid model whose layers are alike but for their parts (bamba, falcon_h1, granitemoehybrid, jamba):
//
//     h += mixers(rms_norm(h));  h += feed_forwards(rms_norm(h)), L times; then rms_norm and the head.
//
// Names: model.{embed_tokens, layers.{l}.{input_layernorm, mixers, ff_norm, feed_forwards}, last_norm}, lm_head unless
// tied. What a layer's mixers and feed-forward parts are is said once, by two functions that both tables call:
//
//     mixers(l, part), feed_forwards(l, part)   call part(names, shape) for each of layer l's, in order of computation
#pragma once

#include <fmt/format.h>

#include "cases/spec/blocks/tables.hpp"

namespace assay {

struct HybridBackbone {
  int64_t vocab_size, hidden_size, num_hidden_layers;
  bool tie_word_embeddings;
  const char* ff_norm = "pre_ff_layernorm";
  const char* last_norm = "final_layernorm";
};

// Under which a part stands in a layer, each with its dot.
struct PartNames {
  const char *weights, *probes;
};

inline constexpr PartNames kMambaPart = {"mamba.", "mixer."};
inline constexpr PartNames kAttentionPart = {"self_attn.", "attn."};
inline constexpr PartNames kFeedForwardPart = {"feed_forward.", "ff."};

template <class Mixers, class FeedForwards>
WeightTable hybrid_weights(const HybridBackbone& model, const Mixers& mixers, const FeedForwards& feed_forwards) {
  const int64_t V = model.vocab_size, H = model.hidden_size;
  WeightTable table;
  table.push_back({"model.embed_tokens.weight", {V, H}, Role::kEmbedding, H, {}});
  for (int64_t l = 0; l < model.num_hidden_layers; ++l) {
    const std::string layer = fmt::format("model.layers.{}.", l);
    const auto part = [&](const PartNames& names, const auto& shape) {
      describe_weights(table, layer + names.weights, shape);
    };
    table.push_back({layer + "input_layernorm.weight", {H}, Role::kNorm, 1, {}});
    mixers(l, part);
    table.push_back({layer + model.ff_norm + ".weight", {H}, Role::kNorm, 1, {}});
    feed_forwards(l, part);
  }
  table.push_back({fmt::format("model.{}.weight", model.last_norm), {H}, Role::kNorm, 1, {}});
  if (!model.tie_word_embeddings) table.push_back({"lm_head.weight", {V, H}, Role::kHead, H, {}});
  return table;
}

// Where a layer has several feed-forward parts their sum has no probe: no module of an original gives it out before it
// joins the residual.
template <class Mixers, class FeedForwards>
std::vector<ProbeSpec> hybrid_probes(const HybridBackbone& model, const Mixers& mixers,
                                     const FeedForwards& feed_forwards) {
  const int64_t H = model.hidden_size;
  ProbeTable table;
  table.add("embed", {H}, "embedding", -1);
  for (int64_t l = 0; l < model.num_hidden_layers; ++l) {
    const std::string layer = fmt::format("layers.{}.", l);
    const auto part = [&](const PartNames& names, const auto& shape) {
      describe_probes(table, layer + names.probes, l, shape);
    };
    table.add(layer + "norm", {H}, "rms_norm", l);
    mixers(l, part);
    table.add(layer + "mixed", {H}, "residual", l);
    table.add(layer + "ff_norm", {H}, "rms_norm", l);
    feed_forwards(l, part);
    table.add(layer + "out", {H}, "residual", l);
  }
  table.add("norm_f", {H}, "rms_norm", -1);
  table.add("logits", {model.vocab_size}, "linear", -1);
  return table.take();
}

}  // namespace assay
