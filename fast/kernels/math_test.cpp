#include "fast/kernels/math.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace assay::fast {
namespace {

double ulp_of(double x) { return std::ldexp(1.0, std::max(-126, std::ilogb(x)) - 23); }

TEST(PreciseExp, IsWithinOneUlp) {
  double worst = 0;
  for (int i = 0; i <= 2000000; ++i) {
    const float x = -87.0f * static_cast<float>(i) / 2000000.0f;
    const double expected = std::exp(static_cast<double>(x));
    worst = std::max(worst, std::abs(precise_exp(x) - expected) / ulp_of(expected));
  }
  EXPECT_LT(worst, 1.0);
}

// The mean signed error of slow decays: what a recurrence multiplies by its memory.
TEST(PreciseExp, IsUnbiasedNearZero) {
  for (float scale : {1e-4f, 1e-3f, 1e-2f, 1e-1f}) {
    double sum = 0;
    const int count = 100000;
    for (int i = 1; i <= count; ++i) {
      const float x = -scale * static_cast<float>(i) / static_cast<float>(count);
      sum += precise_exp(x) - std::exp(static_cast<double>(x));
    }
    EXPECT_LT(std::abs(sum / count), 0.02 * std::ldexp(1.0, -24)) << scale;
  }
}

TEST(PreciseExp, HasItsEdges) {
  EXPECT_EQ(precise_exp(0.0f), 1.0f);
  EXPECT_EQ(precise_exp(-200.0f), 0.0f);
  EXPECT_EQ(precise_exp(-std::numeric_limits<float>::infinity()), 0.0f);
  EXPECT_EQ(precise_exp(std::numeric_limits<float>::infinity()), std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(precise_exp(std::numeric_limits<float>::quiet_NaN())));
  EXPECT_NEAR(precise_exp(-87.3f) * 1e38, std::exp(static_cast<double>(-87.3f)) * 1e38, 1e-6);
}

TEST(Softplus, SwitchesAtTwenty) {
  EXPECT_EQ(softplus(20.5f), 20.5f);
  EXPECT_FLOAT_EQ(softplus(0.0f), 0.69314718f);
  EXPECT_FLOAT_EQ(softplus(-20.0f), 2.0611537e-9f);
  EXPECT_TRUE(std::isnan(softplus(std::numeric_limits<float>::quiet_NaN())));
}

TEST(Sigmoid, HasItsLimits) {
  EXPECT_FLOAT_EQ(sigmoid(1.0f), 0.73105858f);
  EXPECT_EQ(sigmoid(-200.0f), 0.0f);
  EXPECT_EQ(sigmoid(200.0f), 1.0f);
}

TEST(Silu, HasItsLimits) {
  EXPECT_FLOAT_EQ(silu(1.0f), 0.73105858f);
  EXPECT_EQ(silu(-200.0f), 0.0f);
  EXPECT_EQ(silu(200.0f), 200.0f);
}

TEST(Clamp, KeepsNaN) {
  EXPECT_EQ(clamp(-1.0f, 0.0f, 2.0f), 0.0f);
  EXPECT_EQ(clamp(3.0f, 0.0f, 2.0f), 2.0f);
  EXPECT_EQ(clamp(1.0f, 0.0f, std::numeric_limits<float>::infinity()), 1.0f);
  EXPECT_TRUE(std::isnan(clamp(std::numeric_limits<float>::quiet_NaN(), 0.0f, 2.0f)));
}

}  // namespace
}  // namespace assay::fast
