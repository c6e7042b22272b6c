#include "reference/blocks/token_ends.hpp"

#include "reference/ops/embedding.hpp"
#include "reference/ops/linear.hpp"

namespace assay::reference {

at::Tensor embed(const at::Tensor& ids, const WeightStore& weights, const std::string& name, const Pass& pass,
                 double multiplier) {
  const at::Tensor rows = reference::embedding(ids, weights.at(name));
  return pass.keep("embed", multiplier == 1 ? rows : rows * multiplier);
}

at::Tensor logits(const at::Tensor& h, const WeightStore& weights, const std::string& name, const Pass& pass,
                  double multiplier) {
  const at::Tensor scores = reference::linear(h, weights.at(name));
  return pass.keep("logits", multiplier == 1 ? scores : scores * multiplier);
}

}  // namespace assay::reference
