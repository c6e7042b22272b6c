// theta 16 on 8 lanes gives 1, 1/2, 1/4, 1/8: every expectation is worked out from those.
#include "fast/blocks/rotary_frequencies.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

namespace assay::fast {
namespace {

RotaryShape eight_lanes(RotaryShape::Scaling scaling, double factor) {
  RotaryShape shape;
  shape.width = 8;
  shape.theta = 16;
  shape.scaling = scaling;
  shape.factor = factor;
  return shape;
}

void expect_frequencies(const RotaryShape& shape, const std::vector<float>& expected) {
  const std::vector<float> f = rotary_frequencies(shape);
  ASSERT_EQ(f.size(), expected.size());
  for (size_t i = 0; i < f.size(); ++i) EXPECT_NEAR(f[i], expected[i], 1e-6f * expected[i]) << i;
}

TEST(RotaryFrequencies, PowersOfTheta) {
  expect_frequencies(eight_lanes(RotaryShape::Scaling::kNone, 1), {1, 0.5f, 0.25f, 0.125f});
  RotaryShape shape;
  shape.width = 4;
  expect_frequencies(shape, {1, 0.01f});
}

TEST(RotaryFrequencies, LinearDividesAll) {
  expect_frequencies(eight_lanes(RotaryShape::Scaling::kLinear, 4), {0.25f, 0.125f, 0.0625f, 0.03125f});
}

// Over L columns pair i makes L / (2 pi 2^i) turns: with L = 16 pi 2^r, n turns are made by pair 3 + r - log2 n.
TEST(RotaryFrequencies, YarnRampsFromFastToSlowPairs) {
  RotaryShape shape = eight_lanes(RotaryShape::Scaling::kYarn, 4);
  shape.beta_fast = 4;
  shape.beta_slow = 1;
  shape.original_length = 16 * std::numbers::pi * std::exp2(0.3);  // corners 1.3 and 3.3, whole ones 1 and 4
  expect_frequencies(shape, {1, 0.5f, 0.1875f, 0.0625f});
  shape.truncates = false;
  shape.original_length = 16 * std::numbers::pi * std::exp2(0.5);  // corners 1.5 and 3.5
  expect_frequencies(shape, {1, 0.5f, 0.203125f, 0.0546875f});
}

// Wavelengths 2 pi {1, 2, 4, 8}; those up to 4 pi keep their frequency, those from 16 pi on get a quarter of it.
TEST(RotaryFrequencies, Llama3GoesByWavelength) {
  RotaryShape shape = eight_lanes(RotaryShape::Scaling::kLlama3, 4);
  shape.original_length = 16 * std::numbers::pi;
  expect_frequencies(shape, {1, 0.5f, 0.125f, 0.03125f});
}

}  // namespace
}  // namespace assay::fast
