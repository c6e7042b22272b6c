#include "fast/blocks/shared_transformer.hpp"

#include "fast/blocks/norm.hpp"

namespace assay::fast {

SharedTransformerWeights shared_transformer_weights(Weights& weights, const std::string& block, const std::string& site,
                                                    const SharedTransformerShape& shape, int64_t ordinal) {
  return {weights.at(block + "input_layernorm.weight"),
          attention_weights(weights, block + "self_attn.", shape.attention, ordinal),
          weights.at(block + "pre_ff_layernorm.weight"),
          feed_forward_weights(weights, block + "feed_forward.", shape.feed_forward, ordinal),
          weights.at(site + "linear.weight")};
}

void shared_transformer(Pass& pass, const SharedTransformerShape& shape, const SharedTransformerWeights& weights,
                        const std::string& probe, int64_t layer, const Matrix& h, const Matrix& e0,
                        const Matrix& output) {
  const NormKind kind{shape.epsilon};
  const int64_t width = h.columns;
  Scratch scratch(pass.scratch);

  const Matrix both = pass.buffer(2 * width, probe + "shared input"), u = pass.buffer(2 * width, probe + "shared_norm");
  scale(pass, h, 1, both.slice(0, width));
  scale(pass, e0, 1, both.slice(width, width));
  norm(pass, both, weights.input_norm, kind, u);
  pass.probes.add(probe + "shared_norm", u);

  const Matrix attended = pass.buffer(shape.attention.hidden_size, probe + "attn.out_proj");
  attention_block(pass, shape.attention, weights.attention, probe + "attn.", layer, u, attended);
  const Matrix a = pass.buffer(attended.columns, probe + "ff_norm");
  norm(pass, attended, weights.feed_forward_norm, kind, a);
  pass.probes.add(probe + "ff_norm", a);

  const Matrix widened = pass.buffer(shape.feed_forward.hidden_size, probe + "ff.down_proj");
  feed_forward(pass, shape.feed_forward, weights.feed_forward, probe + "ff.", a, widened);
  project(pass, widened, weights.out, {}, output);
  pass.probes.add(probe + "shared_out", output);
  scratch.close();
}

}  // namespace assay::fast
