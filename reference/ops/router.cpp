#include "reference/ops/router.hpp"

#include <algorithm>
#include <limits>
#include <tuple>

namespace assay::reference {

namespace {

// Indices of the k largest, ties to the lower index.
at::Tensor largest(const at::Tensor& scores, int64_t k) {
  return std::get<1>(scores.sort(/*stable=*/true, /*dim=*/-1, /*descending=*/true)).narrow(-1, 0, k);
}

// Only the best blocks of neighbouring experts stay in the choice; a block counts as the sum of its two best.
at::Tensor keep_best_groups(const at::Tensor& scores, const ExpertsShape& shape) {
  const at::Tensor blocks = scores.unflatten(-1, {shape.groups, shape.count / shape.groups});
  const at::Tensor two_best = std::get<0>(blocks.topk(std::min<int64_t>(2, blocks.size(-1)), -1)).sum(-1);
  const at::Tensor chosen = largest(two_best, shape.chosen_groups);
  const at::Tensor is_kept =
      at::zeros_like(two_best).scatter(-1, chosen, 1).unsqueeze(-1).expand_as(blocks).flatten(-2);
  return scores.masked_fill(is_kept == 0, -std::numeric_limits<double>::infinity());
}

}  // namespace

at::Tensor router(const at::Tensor& logits, const at::Tensor& bias, const ExpertsShape& shape) {
  using Router = ExpertsShape::Router;
  at::Tensor chosen, weights;
  switch (shape.router) {
    case Router::kSoftmaxTopK: {
      const at::Tensor probabilities = at::softmax(logits, -1);
      chosen = largest(probabilities, shape.chosen);
      weights = probabilities.gather(-1, chosen);
      break;
    }
    case Router::kTopKSoftmax:
      chosen = largest(logits, shape.chosen);
      weights = at::softmax(logits.gather(-1, chosen), -1);
      break;
    case Router::kSigmoid: {
      const at::Tensor scores = at::sigmoid(logits);
      at::Tensor biased = bias.defined() ? scores + bias : scores;
      if (shape.groups > 1) biased = keep_best_groups(biased, shape);
      chosen = largest(biased, shape.chosen);
      weights = scores.gather(-1, chosen);
      break;
    }
  }
  if (shape.normalises) weights = weights / (weights.sum(-1, /*keepdim=*/true) + shape.epsilon);
  return at::zeros_like(logits).scatter(-1, chosen, weights * shape.scaling);
}

}  // namespace assay::reference
