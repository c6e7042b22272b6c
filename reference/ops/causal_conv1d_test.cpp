#include "reference/ops/causal_conv1d.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "reference/testing/values.hpp"

namespace assay::reference {
namespace {

using Form = decltype(&causal_conv1d);

struct NamedForm {
  const char* name;
  Form run;
};

class CausalConv1dTest : public testing::TestWithParam<NamedForm> {
 protected:
  CausalConv1d run(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, const at::Tensor& state,
                   bool has_silu, const at::Tensor& mask = {}) const {
    return GetParam().run(x, weight, bias, state, mask, has_silu);
  }
};

INSTANTIATE_TEST_SUITE_P(Forms, CausalConv1dTest,
                         testing::Values(NamedForm{"sequence", &causal_conv1d},
                                         NamedForm{"update", &causal_conv1d_update}),
                         [](const auto& case_info) { return std::string(case_info.param.name); });

TEST_P(CausalConv1dTest, LastTapAloneIsTheIdentityAndFirstTapAloneDelays) {
  const at::Tensor x = values({2, 7, 3}, 1);
  at::Tensor last = at::zeros({3, 4}, at::kDouble), first = at::zeros({3, 4}, at::kDouble);
  last.select(1, 3).fill_(1);
  first.select(1, 0).fill_(1);
  EXPECT_EQ(difference(run(x, last, {}, {}, false).y, x), 0);
  const at::Tensor delayed = run(x, first, {}, {}, false).y;
  EXPECT_EQ(difference(delayed.narrow(1, 3, 4), x.narrow(1, 0, 4)), 0);
  EXPECT_EQ(difference(delayed.narrow(1, 0, 3), at::zeros({2, 3, 3}, at::kDouble)), 0);
}

TEST_P(CausalConv1dTest, FollowsTheFormulaAtEveryLengthAroundK) {
  const int64_t rows = 2, channels = 3, taps = 4;
  for (const int64_t length : {1, 3, 4, 5, 9}) {
    const at::Tensor x = values({rows, length, channels}, 1), weight = values({channels, taps}, 2);
    const at::Tensor bias = values({channels}, 3), state = values({rows, channels, taps}, 4);
    const CausalConv1d result = run(x, weight, bias, state, true);
    const auto input = [&](int64_t b, int64_t c, int64_t t) {  // t < 0: before the call
      return t >= 0 ? element(x, {b, t, c}) : element(state, {b, c, taps + t});
    };
    for (int64_t b = 0; b < rows; ++b)
      for (int64_t c = 0; c < channels; ++c) {
        for (int64_t t = 0; t < length; ++t) {
          double sum = element(bias, {c});
          for (int64_t j = 0; j < taps; ++j) sum += element(weight, {c, j}) * input(b, c, t - taps + 1 + j);
          EXPECT_NEAR(element(result.y, {b, t, c}), sum / (1 + std::exp(-sum)), 1e-14);
        }
        for (int64_t j = 0; j < taps; ++j)
          EXPECT_EQ(element(result.final_state, {b, c, j}), input(b, c, length - taps + j));
      }
  }
}

TEST_P(CausalConv1dTest, WithoutAStateTheWindowIsFilledWithZerosOnTheLeft) {
  const at::Tensor x = values({1, 2, 1}, 1), weight = values({1, 4}, 2);
  const CausalConv1d result = run(x, weight, {}, {}, false);
  EXPECT_EQ(difference(result.final_state.narrow(2, 0, 2), at::zeros({1, 1, 2}, at::kDouble)), 0);
  EXPECT_EQ(difference(result.final_state.narrow(2, 2, 2), x.transpose(1, 2)), 0);
  EXPECT_EQ(difference(run(x, weight, {}, at::zeros({1, 1, 4}, at::kDouble), false).y, result.y), 0);
}

TEST_P(CausalConv1dTest, EverySplitEqualsTheWhole) {
  const at::Tensor x = values({2, 9, 3}, 1), weight = values({3, 4}, 2), bias = values({3}, 3);
  const CausalConv1d whole = run(x, weight, bias, {}, true);
  for (int64_t split = 1; split < 9; ++split) {
    const CausalConv1d first = run(x.narrow(1, 0, split), weight, bias, {}, true);
    const CausalConv1d second = run(x.narrow(1, split, 9 - split), weight, bias, first.final_state, true);
    EXPECT_LT(difference(at::cat({first.y, second.y}, 1), whole.y), 1e-15);
    EXPECT_EQ(difference(second.final_state, whole.final_state), 0);
  }
}

TEST_P(CausalConv1dTest, MaskedColumnsGiveZeroAndTheStateIgnoresTheMask) {
  const at::Tensor x = values({2, 5, 3}, 1), weight = values({3, 4}, 2), bias = values({3}, 3);
  const at::Tensor mask = at::tensor({0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0}, at::kDouble).view({2, 5});
  const CausalConv1d masked = run(x, weight, bias, {}, true, mask), plain = run(x, weight, bias, {}, true);
  EXPECT_EQ(difference(masked.y[0].narrow(0, 0, 2), at::zeros({2, 3}, at::kDouble)), 0);
  EXPECT_EQ(difference(masked.y[0].narrow(0, 2, 3), plain.y[0].narrow(0, 2, 3)), 0);
  EXPECT_EQ(difference(masked.y[1], plain.y[1]), 0);
  EXPECT_EQ(difference(masked.final_state, plain.final_state), 0);
}

}  // namespace
}  // namespace assay::reference
