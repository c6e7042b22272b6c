// attention on scores whose softmax is a small fraction.
#include "reference/ops/attention.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "reference/testing/values.hpp"

namespace assay::reference {
namespace {

at::Tensor doubles(const std::vector<double>& elements, const std::vector<int64_t>& shape) {
  return at::tensor(elements, at::kDouble).view(shape);
}

void expect_elements(const at::Tensor& y, const std::vector<double>& expected) {
  ASSERT_EQ(y.numel(), static_cast<int64_t>(expected.size()));
  EXPECT_LT(difference(y.reshape({-1}), doubles(expected, {static_cast<int64_t>(expected.size())})), 1e-12);
}

const double kLn3 = std::log(3.0);

TEST(Attention, NeighbouringQueriesShareAKeyHead) {
  const at::Tensor q = at::ones({1, 6, 1, 1}, at::kDouble), k = at::ones({1, 2, 1, 1}, at::kDouble);
  const at::Tensor y = reference::attention(q, k, doubles({5, 7}, {1, 2, 1, 1}), {}, 1);
  EXPECT_EQ(y.sizes(), at::IntArrayRef({1, 1, 6, 1}));
  expect_elements(y, {5, 5, 5, 7, 7, 7});
}

TEST(Attention, HeadsFollowColumnsInTheOutput) {
  const at::Tensor q = at::zeros({1, 2, 3, 1}, at::kDouble), k = at::zeros({1, 2, 3, 1}, at::kDouble);
  // The mean of the values so far, 3 6 9 in head 0 and 1 3 5 in head 1.
  const at::Tensor y = reference::attention(q, k, doubles({3, 6, 9, 1, 3, 5}, {1, 2, 3, 1}), {}, 1);
  EXPECT_EQ(y.sizes(), at::IntArrayRef({1, 3, 2, 1}));
  expect_elements(y, {3, 1, 4.5, 2, 6, 3});
}

TEST(Attention, ScaleEntersBeforeTheSoftmax) {
  const at::Tensor q = at::ones({1, 1, 2, 1}, at::kDouble), k = doubles({0, kLn3}, {1, 1, 2, 1});
  const at::Tensor v = doubles({4, 8}, {1, 1, 2, 1});
  expect_elements(reference::attention(q, k, v, {}, 1), {4, 7});    // weights 1 and 3
  expect_elements(reference::attention(q, k, v, {}, 2), {4, 7.6});  // weights 1 and 9
}

TEST(Attention, LastQueriesSeeAllEarlierColumns) {
  const at::Tensor q = at::ones({1, 1, 2, 1}, at::kDouble), k = doubles({kLn3, 0, 0, kLn3}, {1, 1, 4, 1});
  const at::Tensor v = doubles({1, 2, 6, 10}, {1, 1, 4, 1});
  // Columns 2 and 3 ask: (3 + 2 + 6) / 5 and (3 + 2 + 6 + 30) / 8.
  expect_elements(reference::attention(q, k, v, {}, 1), {2.2, 5.125});
}

TEST(Attention, PaddingIsNotSeen) {
  const at::Tensor q = at::ones({2, 1, 3, 1}, at::kDouble), k = at::zeros({2, 1, 3, 1}, at::kDouble);
  const at::Tensor v = doubles({90, 2, 6, 90, 2, 6}, {2, 1, 3, 1});
  const at::Tensor mask = at::tensor({0, 1, 1, 1, 1, 1}, at::kLong).view({2, 3}).to(at::kBool);
  const at::Tensor y = reference::attention(q, k, v, mask, 1);
  expect_elements(y.narrow(1, 1, 2), {2, 4, 46, 98.0 / 3});
  // A query at padding sees nothing and must still be finite, or NaN spreads through the layers above it.
  EXPECT_NEAR(element(y, {0, 0, 0, 0}), 98.0 / 3, 1e-12);
}

TEST(Attention, LargeScoresDoNotOverflow) {
  const at::Tensor q = at::full({1, 1, 2, 1}, 1e3), k = at::tensor({1.0F, 2.0F}).view({1, 1, 2, 1});
  const at::Tensor y = reference::attention(q, k, at::tensor({4.0F, 8.0F}).view({1, 1, 2, 1}), {}, 1);
  EXPECT_EQ(element(y, {0, 1, 0, 0}), 8);
}

}  // namespace
}  // namespace assay::reference
