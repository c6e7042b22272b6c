// Both orders of gate and norm on groups whose root mean square is a whole number.
#include "reference/ops/gated_rms_norm.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "reference/testing/values.hpp"

namespace assay::reference {
namespace {

// With epsilon 3.5 the groups (3, 4) and (11, 0) have roots 4 and 8; over all four the root would be that of 40.
const at::Tensor kX = at::tensor({3.0, 4.0, 11.0, 0.0}, at::kDouble);
const at::Tensor kWeight = at::tensor({1.0, 2.0, 0.5, 1.0}, at::kDouble);
constexpr double kEpsilon = 3.5;

TEST(GatedRmsNorm, NormFirst) {
  const at::Tensor z = at::tensor({40.0, 0.0, 40.0, 40.0}, at::kDouble);  // silu(40) is 40 in float64
  const at::Tensor y = reference::rms_norm_gated(kX, z, kWeight, 2, kEpsilon);
  EXPECT_LT(difference(y, at::tensor({30.0, 0.0, 27.5, 0.0}, at::kDouble)), 1e-12);
}

TEST(GatedRmsNorm, NormFirstInOneGroup) {
  const at::Tensor z = at::full({4}, 40.0, at::kDouble);
  const at::Tensor y = reference::rms_norm_gated(kX, z, kWeight, 1, kEpsilon);
  const double root = std::sqrt(40.0);
  EXPECT_LT(difference(y, at::tensor({120 / root, 320 / root, 220 / root, 0.0}, at::kDouble)), 1e-12);
}

// Gates of 40 are taken out again by the norm, but for epsilon; a gate of 0 changes its neighbour's mean.
TEST(GatedRmsNorm, GateFirst) {
  const at::Tensor z = at::tensor({40.0, 0.0, 40.0, 40.0}, at::kDouble);
  const at::Tensor y = reference::gated_rms_norm(kX, z, kWeight, 2, kEpsilon);
  const double first = 120 / std::sqrt(120.0 * 120 / 2 + kEpsilon), third = 440 / std::sqrt(440.0 * 440 / 2 + kEpsilon);
  EXPECT_LT(difference(y, at::tensor({first, 0.0, 0.5 * third, 0.0}, at::kDouble)), 1e-12);
}

TEST(GatedRmsNorm, RowsAreNormedAlone) {
  const at::Tensor x = at::stack({kX, 100 * kX}).view({2, 1, 4}), z = at::full({2, 1, 4}, 40.0, at::kDouble);
  const at::Tensor y = reference::rms_norm_gated(x, z, kWeight, 2, kEpsilon);
  EXPECT_LT(difference(y[0][0], at::tensor({30.0, 80.0, 27.5, 0.0}, at::kDouble)), 1e-12);
}

}  // namespace
}  // namespace assay::reference
