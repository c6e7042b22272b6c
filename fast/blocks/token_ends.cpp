#include "fast/blocks/token_ends.hpp"

#include "fast/kernels/embedding.hpp"

namespace assay::fast {

TokenEnds token_ends(const Weights& weights, const std::string& embeddings) {
  TokenEnds ends{weights.at(embeddings), weights.optional("lm_head.weight")};
  if (!ends.head) ends.head = ends.embeddings;
  return ends;
}

Matrix embed(Pass& pass, const TokenEnds& ends, double multiplier) {
  const Matrix hidden = pass.buffer(ends.embeddings.shape[1], "residual stream");
  EmbeddingParams<float> p;
  p.ids = pass.tokens;
  p.weight = ends.embeddings.f32();
  p.y = hidden.data;
  p.tokens = pass.tokens_in_all();
  p.vocabulary = ends.embeddings.shape[0];
  p.width = hidden.columns;
  embedding(p, pass.context.stream());
  pass.context.record(embedding_id(p));
  if (multiplier != 1) scale(pass, hidden, multiplier, hidden);
  pass.probes.add("embed", hidden);
  return hidden;
}

void logits(Pass& pass, const Matrix& normed, const TokenEnds& ends, double multiplier) {
  const Matrix scores = pass.buffer(ends.head.shape[0], "logits");
  project(pass, normed, ends.head, {}, scores);
  if (multiplier != 1) scale(pass, scores, multiplier, scores);
  pass.probes.add_always("logits", scores);
}

}  // namespace assay::fast
