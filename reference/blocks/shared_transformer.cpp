#include "reference/blocks/shared_transformer.hpp"

#include "reference/blocks/attention.hpp"
#include "reference/blocks/feed_forward.hpp"
#include "reference/blocks/norm.hpp"
#include "reference/ops/linear.hpp"

namespace assay::reference {

at::Tensor shared_transformer(const at::Tensor& h, const at::Tensor& e0, const Place& block, const Place& site,
                              const SharedTransformerShape& shape, LayerState& state, const Pass& pass,
                              int64_t ordinal) {
  const Place attention{block.weights, block.prefix + "self_attn.", block.probe + "attn."};
  const Place feed{block.weights, block.prefix + "feed_forward.", block.probe + "ff."};

  const at::Tensor u = norm(at::cat({h, e0}, -1), block, "input_layernorm", "shared_norm", shape.epsilon, pass);
  const at::Tensor a = attention_block(u, attention, shape.attention, state, pass, ordinal);
  const at::Tensor f = feed_forward(norm(a, block, "pre_ff_layernorm", "ff_norm", shape.epsilon, pass), feed,
                                    shape.feed_forward, pass, ordinal);
  return pass.keep(block.probe + "shared_out", reference::linear(f, site.weight("linear.weight")));
}

}  // namespace assay::reference
