// rotary on numbers worked out by hand; frequencies are float32, so expectations hold to about 1e-7 of them.
#include "reference/ops/rotary.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "reference/testing/values.hpp"

namespace assay::reference {
namespace {

RotaryShape plain(int64_t width, double theta) {
  RotaryShape shape;
  shape.width = width;
  shape.theta = theta;
  return shape;
}

void expect_frequencies(const RotaryShape& shape, const std::vector<double>& expected) {
  const at::Tensor f = inverse_frequencies(shape);
  ASSERT_EQ(f.sizes(), at::IntArrayRef({static_cast<int64_t>(expected.size())}));
  EXPECT_EQ(f.scalar_type(), at::kFloat);
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(element(f, {static_cast<int64_t>(i)}) / expected[i], 1, 3e-7) << i;
}

// Pairs are (0, 2) and (1, 3), turned by 3 and 0.3; lanes 4 and 5 pass.
TEST(Rotary, FirstLanesTurnInHalvesAndTheRestPass) {
  const at::Tensor x = at::tensor({1.0, 2.0, 3.0, 4.0, 5.0, 6.0}, at::kDouble).view({1, 1, 1, 6});
  const at::Tensor y = reference::rotary(x, at::tensor({3}, at::kLong).view({1, 1}), plain(4, 100));
  const at::Tensor expected =
      at::tensor({-1.4133525209, 0.7285921514, -2.8288574817, 4.4123863698, 5.0, 6.0}, at::kDouble);
  EXPECT_LT(difference(y, expected.view({1, 1, 1, 6})), 1e-7);
}

TEST(Rotary, EachRowAndColumnHasItsOwnPosition) {
  const at::Tensor x = at::ones({2, 3, 2, 2}, at::kDouble);
  const at::Tensor positions = at::tensor({0, 1, 0, 2}, at::kLong).view({2, 2});  // row 1: no padding, a jump
  const at::Tensor y = reference::rotary(x, positions, plain(2, 10000));
  for (int64_t row = 0; row < 2; ++row)
    for (int64_t head = 0; head < 3; ++head)
      for (int64_t t = 0; t < 2; ++t) {
        const double angle = element(positions, {row, t});
        EXPECT_NEAR(element(y, {row, head, t, 0}), std::cos(angle) - std::sin(angle), 1e-12);
        EXPECT_NEAR(element(y, {row, head, t, 1}), std::cos(angle) + std::sin(angle), 1e-12);
      }
}

// 12345 * 0.1f rounds to 1234.5 in float32; in float64 it is larger by 1.8e-5.
TEST(Rotary, TheAngleIsOneFloat32Product) {
  at::Tensor x = at::zeros({1, 1, 1, 4});
  x.view({4})[1] = 1;
  const at::Tensor y = reference::rotary(x, at::tensor({12345}, at::kLong).view({1, 1}), plain(4, 100));
  EXPECT_NEAR(element(y, {0, 0, 0, 1}), std::cos(1234.5), 1e-6);
  EXPECT_NEAR(element(y, {0, 0, 0, 3}), std::sin(1234.5), 1e-6);
}

TEST(Rotary, PlainFrequencies) { expect_frequencies(plain(8, 10000), {1, 0.1, 0.01, 0.001}); }

TEST(Rotary, LinearDividesEveryFrequency) {
  RotaryShape shape = plain(4, 100);
  shape.scaling = RotaryShape::Scaling::kLinear;
  shape.factor = 4;
  expect_frequencies(shape, {0.25, 0.025});
}

// 8 ln(64 / (2 pi turns)) / (2 ln 100) is 0.81 for 4 turns and 2.62 for half a turn: the ramp runs from 0 to 3.
TEST(Rotary, YarnRampsFromKeptToDivided) {
  RotaryShape shape = plain(8, 100);
  shape.scaling = RotaryShape::Scaling::kYarn;
  shape.factor = 4;
  shape.original_length = 64;
  shape.beta_fast = 4;
  shape.beta_slow = 0.5;
  expect_frequencies(shape, {1, 0.316227766 * 0.75, 0.1 * 0.5, 0.0316227766 * 0.25});
  shape.truncates = false;  // from 0.8118802 to 2.6180602: shares 0, 0.1041534, 0.6578081, 1
  expect_frequencies(shape, {1, 0.316227766 * (1 - 0.75 * 0.1041534), 0.1 * (1 - 0.75 * 0.6578081), 0.0316227766 / 4});
}

// Both ends of the ramp at 0 when the original length is short: the ramp is a step after pair 0.
TEST(Rotary, YarnRampOfNoLength) {
  RotaryShape shape = plain(4, 100);
  shape.scaling = RotaryShape::Scaling::kYarn;
  shape.factor = 2;
  shape.original_length = 6;  // below one turn: both ends are negative before they are cut
  shape.beta_fast = 2;
  shape.beta_slow = 1;
  expect_frequencies(shape, {1, 0.05});
}

TEST(Rotary, YarnScalesCosAndSin) {
  RotaryShape shape = plain(2, 100);
  shape.attention_factor = 1.25;
  const at::Tensor x = at::tensor({1.0, 0.0, 7.0}, at::kDouble).view({1, 1, 1, 3});
  const at::Tensor y = reference::rotary(x, at::tensor({2}, at::kLong).view({1, 1}), shape);
  EXPECT_NEAR(element(y, {0, 0, 0, 0}), 1.25 * std::cos(2.0), 1e-12);
  EXPECT_NEAR(element(y, {0, 0, 0, 1}), 1.25 * std::sin(2.0), 1e-12);
  EXPECT_EQ(element(y, {0, 0, 0, 2}), 7);
}

// Wavelengths 6.3 and 63 are below 1024 / 4, 6283 is above 1024; 628 lies between, at (1024 / 628.3 - 1) / 3 = 0.20991.
TEST(Rotary, Llama3ChoosesByWavelength) {
  RotaryShape shape = plain(8, 10000);
  shape.scaling = RotaryShape::Scaling::kLlama3;
  shape.factor = 8;
  shape.original_length = 1024;
  shape.low_frequency_factor = 1;
  shape.high_frequency_factor = 4;
  expect_frequencies(shape, {1, 0.1, 0.00308676097, 0.000125});
}

}  // namespace
}  // namespace assay::reference
