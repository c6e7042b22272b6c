#include "reference/ops/dt.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "reference/testing/values.hpp"

namespace assay::reference {
namespace {

TEST(Dt, AddsTheBiasOnceBeforeSoftplus) {
  const at::Tensor y =
      reference::dt(at::tensor({0.5, -1.0}, at::kDouble).view({1, 1, 2}), at::tensor({0.25, 2.0}, at::kDouble));
  EXPECT_NEAR(element(y, {0, 0, 0}), std::log(1 + std::exp(0.75)), 1e-14);
  EXPECT_NEAR(element(y, {0, 0, 1}), std::log(1 + std::exp(1.0)), 1e-14);
}

TEST(Dt, LimitsTheResultNotItsArgument) {
  const at::Tensor raw = at::tensor({-30.0, -3.5, 2.0}, at::kDouble);
  const at::Tensor y = reference::dt(raw, at::zeros({3}, at::kDouble), 0.01, 0.05);
  EXPECT_EQ(element(y, {0}), 0.01);
  EXPECT_NEAR(element(y, {1}), 0.02975041, 1e-7);
  EXPECT_EQ(element(y, {2}), 0.05);
}

}  // namespace
}  // namespace assay::reference
