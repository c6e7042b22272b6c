// The tables of a pure recurrent model (mamba, mamba2, falcon_mamba): h += mixer(rms_norm(h)), L times; then rms_norm
// and the head. Names: backbone.{embeddings, layers.{l}.{norm, mixer.*}, norm_f}, lm_head unless tied.
#pragma once

#include <fmt/format.h>

#include "cases/spec/blocks/tables.hpp"

namespace assay {

struct PureBackbone {
  int64_t vocab_size, hidden_size, num_hidden_layers;
  bool tie_word_embeddings;
};

template <class MixerShape>
WeightTable pure_weights(const PureBackbone& model, const MixerShape& mixer) {
  const int64_t V = model.vocab_size, H = model.hidden_size;
  WeightTable table;
  table.push_back({"backbone.embeddings.weight", {V, H}, Role::kEmbedding, H, {}});
  for (int64_t l = 0; l < model.num_hidden_layers; ++l) {
    const std::string layer = fmt::format("backbone.layers.{}.", l);
    table.push_back({layer + "norm.weight", {H}, Role::kNorm, 1, {}});
    describe_weights(table, layer + "mixer.", mixer);
  }
  table.push_back({"backbone.norm_f.weight", {H}, Role::kNorm, 1, {}});
  if (!model.tie_word_embeddings) table.push_back({"lm_head.weight", {V, H}, Role::kHead, H, {}});
  return table;
}

template <class MixerShape>
std::vector<ProbeSpec> pure_probes(const PureBackbone& model, const MixerShape& mixer) {
  const int64_t H = model.hidden_size;
  ProbeTable table;
  table.add("embed", {H}, "embedding", -1);
  for (int64_t l = 0; l < model.num_hidden_layers; ++l) {
    const std::string layer = fmt::format("layers.{}.", l);
    table.add(layer + "norm", {H}, "rms_norm", l);
    describe_probes(table, layer + "mixer.", l, mixer);
    table.add(layer + "out", {H}, "residual", l);
  }
  table.add("norm_f", {H}, "rms_norm", -1);
  table.add("logits", {model.vocab_size}, "linear", -1);
  return table.take();
}

}  // namespace assay
