#include "fast/blocks/backbone.hpp"

#include "fast/kernels/embedding.hpp"
#include "fast/kernels/rms_norm.hpp"

namespace assay::fast {

BackboneWeights backbone_weights(const Weights& weights, int64_t layers) {
  BackboneWeights backbone;
  backbone.embeddings = weights.at("backbone.embeddings.weight");
  for (int64_t layer = 0; layer < layers; ++layer)
    backbone.norms.push_back(weights.at("backbone.layers." + std::to_string(layer) + ".norm.weight"));
  backbone.norm_f = weights.at("backbone.norm_f.weight");
  backbone.head = weights.optional("lm_head.weight");
  if (!backbone.head) backbone.head = backbone.embeddings;
  return backbone;
}

namespace {

// normed = rms_norm(hidden), or with mixed: hidden += mixed first.
void normalise(Pass& pass, const Matrix& hidden, const float* mixed, const Weight& weight, double epsilon,
               const Matrix& normed) {
  RmsNormParams<float> p;
  p.x = mixed != nullptr ? mixed : hidden.data;
  p.residual = mixed != nullptr ? hidden.data : nullptr;
  p.sum = mixed != nullptr ? hidden.data : nullptr;
  p.weight = weight.f32();
  p.y = normed.data;
  p.rows = hidden.rows;
  p.width = hidden.columns;
  p.epsilon = static_cast<float>(epsilon);
  rms_norm(p, pass.context.stream());
  pass.context.record(rms_norm_id(p));
}

}  // namespace

void run_backbone(Pass& pass, const BackboneWeights& weights, double epsilon, const Mixer& mixer) {
  const int64_t tokens = pass.tokens_in_all();
  const int64_t vocabulary = weights.embeddings.shape[0], width = weights.embeddings.shape[1];
  const auto buffer = [&](int64_t columns, const char* name) {
    return as_matrix(allocate<float>(pass.scratch, {tokens, columns}, name), columns);
  };
  const Matrix hidden = buffer(width, "residual stream"), normed = buffer(width, "normed"),
               mixed = buffer(width, "mixer output");

  EmbeddingParams<float> table;
  table.ids = pass.tokens;
  table.weight = weights.embeddings.f32();
  table.y = hidden.data;
  table.tokens = tokens;
  table.vocabulary = vocabulary;
  table.width = width;
  embedding(table, pass.context.stream());
  pass.context.record(embedding_id(table));
  pass.probes.add("embed", hidden);

  const auto layers = static_cast<int64_t>(weights.norms.size());
  const auto add_and_normalise = [&](int64_t layer, const Weight& weight, const std::string& probe) {
    normalise(pass, hidden, layer > 0 ? mixed.data : nullptr, weight, epsilon, normed);
    if (layer > 0) pass.probes.add("layers." + std::to_string(layer - 1) + ".out", hidden);
    pass.probes.add(probe, normed);
  };
  for (int64_t layer = 0; layer < layers; ++layer) {
    add_and_normalise(layer, weights.norms[static_cast<size_t>(layer)], "layers." + std::to_string(layer) + ".norm");
    mixer(pass, layer, normed, mixed);
  }
  add_and_normalise(layers, weights.norm_f, "norm_f");

  const Matrix logits = buffer(vocabulary, "logits");
  project(pass, normed, weights.head, {}, logits);
  pass.probes.add_always("logits", logits);
}

}  // namespace assay::fast
