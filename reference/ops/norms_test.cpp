// rms_norm, gate and gated_rms_norm against the formula written out in double.
#include <gtest/gtest.h>

#include <cmath>

#include "reference/ops/gate.hpp"
#include "reference/ops/gated_rms_norm.hpp"
#include "reference/ops/rms_norm.hpp"
#include "reference/testing/values.hpp"

namespace assay::reference {
namespace {

TEST(RmsNorm, ByHand) {
  const at::Tensor x = at::tensor({3.0, 4.0}, at::kDouble).view({1, 2});
  const at::Tensor weight = at::tensor({2.0, 0.5}, at::kDouble);
  // mean of squares 12.5, with epsilon 3.5 it is 16
  EXPECT_EQ(difference(reference::rms_norm(x, weight, 3.5), at::tensor({1.5, 0.5}, at::kDouble).view({1, 2})), 0);
}

TEST(RmsNorm, ZerosStayZeros) {
  const at::Tensor y = reference::rms_norm(at::zeros({2, 5}), at::ones({5}), 1e-5);
  EXPECT_EQ(difference(y, at::zeros({2, 5})), 0);
}

TEST(Gate, MultipliesBySiluOfTheSecond) {
  const at::Tensor y = reference::gate(at::tensor({2.0, 3.0}, at::kDouble), at::tensor({0.0, 1.0}, at::kDouble));
  EXPECT_EQ(element(y, {0}), 0);
  EXPECT_NEAR(element(y, {1}), 3 * 0.7310585786300049, 1e-14);
}

TEST(GatedRmsNorm, GateFirstThenMeansInsideEachGroup) {
  const int64_t width = 6, groups = 2, each = width / groups;
  const double epsilon = 1e-3;
  at::Tensor x = values({3, width}, 1);
  x.narrow(1, 0, each).mul_(50);  // groups of unlike scale: one mean over all six would be far off
  const at::Tensor z = values({3, width}, 2, -2, 2), weight = values({width}, 3, 0.5, 1.5);
  const at::Tensor y = reference::gated_rms_norm(x, z, weight, groups, epsilon);
  for (int64_t row = 0; row < 3; ++row) {
    std::vector<double> u;
    for (int64_t i = 0; i < width; ++i) {
      const double gate = element(z, {row, i});
      u.push_back(element(x, {row, i}) * gate / (1 + std::exp(-gate)));
    }
    for (int64_t i = 0; i < width; ++i) {
      const int64_t first = i / each * each;
      double sum = 0;
      for (int64_t j = first; j < first + each; ++j) sum += u[static_cast<size_t>(j)] * u[static_cast<size_t>(j)];
      const double expected =
          element(weight, {i}) * u[static_cast<size_t>(i)] / std::sqrt(sum / static_cast<double>(each) + epsilon);
      EXPECT_NEAR(element(y, {row, i}), expected, 1e-12);
    }
  }
}

}  // namespace
}  // namespace assay::reference
