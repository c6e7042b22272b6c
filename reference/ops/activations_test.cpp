#include "reference/ops/activations.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "reference/testing/values.hpp"

namespace assay::reference {
namespace {

TEST(Activations, SoftplusIsTheIdentityAboveTwenty) {
  const double above = std::nextafter(20.0, 21.0);
  const at::Tensor x = at::tensor({30.0, above, 1000.0}, at::kDouble);
  EXPECT_EQ(difference(reference::softplus(x), x), 0);
  // Below the threshold ln(1 + e^x) is larger than x by e^-x: 2.06e-9 at 20.
  const double at_twenty = element(reference::softplus(at::tensor({20.0}, at::kDouble)), {0});
  EXPECT_NEAR(at_twenty - 20.0, 2.0611536e-9, 1e-14);
}

TEST(Activations, SoftplusOfSmallAndNegative) {
  const at::Tensor y = reference::softplus(at::tensor({0.0, -30.0, 1.0}, at::kDouble));
  EXPECT_NEAR(element(y, {0}), 0.6931471805599453, 1e-15);
  EXPECT_NEAR(element(y, {1}), 9.357622968839299e-14, 1e-26);
  EXPECT_NEAR(element(y, {2}), 1.3132616875182228, 1e-15);
  // log(1 + e^x) instead of log1p would give 0 here.
  EXPECT_GT(element(reference::softplus(at::tensor({-30.0F})), {0}), 9.3e-14);
}

TEST(Activations, Silu) {
  const at::Tensor y = reference::silu(at::tensor({0.0, 1.0, -2.0, -800.0, 50.0}, at::kDouble));
  EXPECT_EQ(element(y, {0}), 0);
  EXPECT_NEAR(element(y, {1}), 0.7310585786300049, 1e-15);
  EXPECT_NEAR(element(y, {2}), -0.2384058440442351, 1e-15);
  EXPECT_EQ(element(y, {3}), 0);
  EXPECT_NEAR(element(y, {4}), 50.0, 1e-12);
}

// By the normal distribution; the approximation by tanh is off by 1.5e-4 at 1.
TEST(Activations, GeluIsExact) {
  const at::Tensor y = reference::gelu(at::tensor({0.0, 1.0, -1.0, 40.0}, at::kDouble));
  EXPECT_EQ(element(y, {0}), 0);
  EXPECT_NEAR(element(y, {1}), 0.8413447460685429, 1e-15);
  EXPECT_NEAR(element(y, {2}), -0.15865525393145707, 1e-15);
  EXPECT_EQ(element(y, {3}), 40);
}

TEST(Activations, Relu2) {
  const at::Tensor y = reference::relu2(at::tensor({-3.0, 0.0, 3.0}, at::kDouble));
  EXPECT_EQ(difference(y, at::tensor({0.0, 0.0, 9.0}, at::kDouble)), 0);
}

TEST(Activations, ActivateChoosesByName) {
  const at::Tensor x = at::tensor({1.0}, at::kDouble);
  EXPECT_NEAR(element(activate(x, Activation::kSilu), {0}), 0.7310585786300049, 1e-15);
  EXPECT_NEAR(element(activate(x, Activation::kGelu), {0}), 0.8413447460685429, 1e-15);
  EXPECT_NEAR(element(activate(2 * x, Activation::kRelu2), {0}), 4, 1e-15);
}

}  // namespace
}  // namespace assay::reference
