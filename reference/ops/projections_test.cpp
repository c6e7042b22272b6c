// embedding and linear on numbers small enough to work out by hand.
#include <gtest/gtest.h>

#include "reference/ops/embedding.hpp"
#include "reference/ops/linear.hpp"
#include "reference/testing/values.hpp"

namespace assay::reference {
namespace {

TEST(Embedding, LooksRowsUp) {
  const at::Tensor weight = at::tensor({0.0, 1.0, 10.0, 11.0, 20.0, 21.0}, at::kDouble).view({3, 2});
  const at::Tensor ids = at::tensor({2, 0, 0, 1}, at::kLong).view({2, 2});
  const at::Tensor expected = at::tensor({20.0, 21.0, 0.0, 1.0, 0.0, 1.0, 10.0, 11.0}, at::kDouble).view({2, 2, 2});
  EXPECT_EQ(difference(reference::embedding(ids, weight), expected), 0);
}

TEST(Linear, RowsOfTheWeightAreOutputs) {
  const at::Tensor x = at::tensor({1.0, 2.0, 3.0}, at::kDouble).view({1, 1, 3});
  const at::Tensor weight = at::tensor({1.0, 0.0, -1.0, 2.0, 1.0, 0.5}, at::kDouble).view({2, 3});
  const at::Tensor bias = at::tensor({10.0, 20.0}, at::kDouble);
  EXPECT_EQ(difference(reference::linear(x, weight), at::tensor({-2.0, 5.5}, at::kDouble).view({1, 1, 2})), 0);
  EXPECT_EQ(difference(reference::linear(x, weight, bias), at::tensor({8.0, 25.5}, at::kDouble).view({1, 1, 2})), 0);
}

}  // namespace
}  // namespace assay::reference
