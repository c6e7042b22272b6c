// What the op case of router does not show: the chosen experts and their weights in order. And the order of keys.
#include "fast/kernels/router.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "fast/device/check.hpp"
#include "fast/device/context.hpp"
#include "fast/device/device.hpp"
#include "fast/device/tensor.hpp"
#include "fast/kernels/order_key.hpp"

namespace assay::fast {
namespace {

TEST(OrderKey, OrdersAsTheValuesDo) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const std::vector<float> ascending = {-kInfinity, -3e38f, -1.0f, -1e-40f, 0.0f, 1e-40f, 1.0f, 3e38f, kInfinity};
  EXPECT_GT(order_key(ascending.front()), 0u);
  for (size_t i = 0; i < ascending.size(); ++i) {
    if (i > 0) {
      EXPECT_LT(order_key(ascending[i - 1]), order_key(ascending[i])) << i;
    }
    EXPECT_EQ(from_order_key(order_key(ascending[i])), ascending[i]);
  }
  EXPECT_EQ(order_key(-0.0f), order_key(0.0f));
  EXPECT_GT(order_key(std::nanf("")), order_key(kInfinity));
  EXPECT_TRUE(std::isnan(from_order_key(order_key(std::nanf("")))));
}

TEST(Router, ListsTheChosenInDescendingOrder) {
  if (!device_facts().is_usable) GTEST_SKIP() << device_facts().reason;
  Context context;
  Arena arena("router test", context.memory(), int64_t{1} << 20);
  // Odds 1 : 4 : 3 : 4 and, in the second token, all alike.
  std::vector<float> logits = {0, std::log(4.0f), std::log(3.0f), std::log(4.0f), 7, 7, 7, 7};
  RouterParams<float> p;
  p.logits = upload<float>(arena, HostTensor({2, 4}, logits), "logits", context.stream()).data;
  p.stride = p.count = 4;
  p.tokens = 2;
  p.chosen = 3;
  const Tensor<int32_t> experts = allocate<int32_t>(arena, {2, 3}, "experts");
  const Tensor<float> weights = allocate<float>(arena, {2, 3}, "weights");
  p.experts = experts.data;
  p.weights = weights.data;
  router(p, context.stream());
  std::vector<int32_t> chosen(6);
  check(cudaMemcpyAsync(chosen.data(), experts.data, 6 * sizeof(int32_t), cudaMemcpyDeviceToHost, context.stream()),
        "download");
  const HostTensor weights_host = download(weights, "weights", context.stream());
  EXPECT_EQ(chosen, (std::vector<int32_t>{1, 3, 2, 0, 1, 2}));
  const std::vector<double> expected = {4 / 12.0, 4 / 12.0, 3 / 12.0, 0.25, 0.25, 0.25};
  for (int64_t i = 0; i < 6; ++i) EXPECT_NEAR(weights_host.at(i), expected[static_cast<size_t>(i)], 1e-6) << i;
  arena.check_guards();
}

}  // namespace
}  // namespace assay::fast
