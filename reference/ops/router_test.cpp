// router, every kind, on logits whose softmax or sigmoid is a simple fraction.
#include "reference/ops/router.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "reference/testing/values.hpp"

namespace assay::reference {
namespace {

using Router = ExpertsShape::Router;

ExpertsShape shape_of(Router router, int64_t count, int64_t chosen) {
  ExpertsShape shape;
  shape.router = router;
  shape.count = count;
  shape.chosen = chosen;
  return shape;
}

// Logits whose softmax is proportional to the odds; their sigmoid is odds / (1 + odds).
at::Tensor logits_of(const std::vector<double>& odds) { return at::log(at::tensor(odds, at::kDouble)); }

void expect_weights(const at::Tensor& weights, const std::vector<double>& expected) {
  EXPECT_LT(difference(weights, at::tensor(expected, at::kDouble)), 1e-12) << weights;
}

TEST(Router, SoftmaxOverAllThenTheLargest) {
  ExpertsShape shape = shape_of(Router::kSoftmaxTopK, 4, 2);
  expect_weights(reference::router(logits_of({3, 1, 4, 2}), {}, shape), {0.3, 0, 0.4, 0});
  shape.normalises = true;
  expect_weights(reference::router(logits_of({3, 1, 4, 2}), {}, shape), {3.0 / 7, 0, 4.0 / 7, 0});
}

TEST(Router, TheLargestThenSoftmaxOverThose) {
  expect_weights(reference::router(logits_of({3, 1, 4, 2}), {}, shape_of(Router::kTopKSoftmax, 4, 2)),
                 {3.0 / 7, 0, 4.0 / 7, 0});
}

TEST(Router, OneAndAll) {
  const at::Tensor logits = logits_of({3, 1, 4, 2});
  expect_weights(reference::router(logits, {}, shape_of(Router::kSoftmaxTopK, 4, 1)), {0, 0, 0.4, 0});
  expect_weights(reference::router(logits, {}, shape_of(Router::kTopKSoftmax, 4, 1)), {0, 0, 1, 0});
  expect_weights(reference::router(logits, {}, shape_of(Router::kSoftmaxTopK, 4, 4)), {0.3, 0.1, 0.4, 0.2});
  expect_weights(reference::router(logits, {}, shape_of(Router::kTopKSoftmax, 4, 4)), {0.3, 0.1, 0.4, 0.2});
}

TEST(Router, BiasChoosesAndUnbiasedScoresWeigh) {
  ExpertsShape shape = shape_of(Router::kSigmoid, 4, 2);
  const at::Tensor logits = logits_of({3, 1, 4, 1.0 / 3});  // scores 0.75, 0.5, 0.8, 0.25
  expect_weights(reference::router(logits, {}, shape), {0.75, 0, 0.8, 0});
  const at::Tensor bias = at::tensor({-1.0, 0.0, -0.1, 1.0}, at::kDouble);  // -0.25, 0.5, 0.7, 1.25
  expect_weights(reference::router(logits, bias, shape), {0, 0, 0.8, 0.25});
  shape.normalises = true;
  shape.epsilon = 0.2;
  shape.scaling = 2.5;
  expect_weights(reference::router(logits, bias, shape), {0, 0, 2.5 * 0.8 / 1.25, 2.5 * 0.25 / 1.25});
}

// Blocks {0, 1, 2} and {3, 4, 5}. The best single expert, 3, is in the block whose two best sum to less.
TEST(Router, BlocksCountAsTheSumOfTheirTwoBest) {
  ExpertsShape shape = shape_of(Router::kSigmoid, 6, 2);
  shape.groups = 2;
  shape.chosen_groups = 1;
  const at::Tensor logits = logits_of({1.5, 1.5, 1.0 / 9, 4, 1.0 / 9, 1.0 / 9});  // 0.6, 0.6, 0.1 and 0.8, 0.1, 0.1
  expect_weights(reference::router(logits, {}, shape), {0.6, 0.6, 0, 0, 0, 0});
  shape.chosen_groups = 2;
  expect_weights(reference::router(logits, {}, shape), {0.6, 0, 0, 0.8, 0, 0});
}

// With every score + bias below zero, a masked expert that counted as 0 would beat the experts of the chosen block.
TEST(Router, AMaskedExpertLosesToANegativeOne) {
  ExpertsShape shape = shape_of(Router::kSigmoid, 4, 2);
  shape.groups = 2;
  shape.chosen_groups = 1;
  const at::Tensor logits = logits_of({1, 3, 4, 4});                          // scores 0.5, 0.75, 0.8, 0.8
  const at::Tensor bias = at::tensor({-0.9, -0.9, -1.5, -1.5}, at::kDouble);  // -0.4, -0.15 and -0.7, -0.7
  expect_weights(reference::router(logits, bias, shape), {0.5, 0.75, 0, 0});
}

TEST(Router, TiesGoToTheLowerIndex) {
  const at::Tensor logits = logits_of({1, 2, 2, 2, 1});
  expect_weights(reference::router(logits, {}, shape_of(Router::kSoftmaxTopK, 5, 2)), {0, 0.25, 0.25, 0, 0});
  expect_weights(reference::router(logits, {}, shape_of(Router::kTopKSoftmax, 5, 2)), {0, 0.5, 0.5, 0, 0});
  expect_weights(reference::router(logits, {}, shape_of(Router::kSigmoid, 5, 1)), {0, 2.0 / 3, 0, 0, 0});
  ExpertsShape shape = shape_of(Router::kSigmoid, 4, 1);
  shape.groups = 2;
  shape.chosen_groups = 1;
  expect_weights(reference::router(logits_of({1, 1, 1, 1}), {}, shape), {0.5, 0, 0, 0});
}

TEST(Router, EachTokenChoosesForItself) {
  const at::Tensor logits = at::stack({logits_of({1, 3}), logits_of({7, 1}), logits_of({1, 9})}).view({3, 1, 2});
  const at::Tensor weights = reference::router(logits, {}, shape_of(Router::kSoftmaxTopK, 2, 1));
  EXPECT_LT(difference(weights, at::tensor({0.0, 0.75, 0.875, 0.0, 0.0, 0.9}, at::kDouble).view({3, 1, 2})), 1e-12);
}

}  // namespace
}  // namespace assay::reference
