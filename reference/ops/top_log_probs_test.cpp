#include "reference/ops/top_log_probs.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace assay::reference {
namespace {

TEST(TopLogProbs, AreLogarithmsOfSharesInDescendingOrder) {
  // Shares 1/8, 4/8, 1/8, 2/8: the tie goes to the lower place.
  const at::Tensor logits = at::tensor({0.0, std::log(4.0), 0.0, std::log(2.0)}, at::kDouble).view({1, 4});
  const TopLogProbs top = top_log_probs(logits, 3);
  const int64_t ids[] = {1, 3, 0};
  const double shares[] = {0.5, 0.25, 0.125};
  for (int64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(top.ids[0][i].item<int64_t>(), ids[i]);
    EXPECT_NEAR(top.values[0][i].item<double>(), std::log(shares[i]), 1e-15);
  }
}

TEST(TopLogProbs, TakesTiesFromTheLowestPlaceOn) {
  const TopLogProbs top = top_log_probs(at::zeros({2, 300}), 4);
  for (int64_t row = 0; row < 2; ++row)
    for (int64_t i = 0; i < 4; ++i) EXPECT_EQ(top.ids[row][i].item<int64_t>(), i);
}

}  // namespace
}  // namespace assay::reference
