// What the op cases do not draw: logits masked by -inf, a row with NaN, and what the launcher refuses.
#include "fast/kernels/top_log_probs.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "cases/spec/error.hpp"
#include "fast/device/check.hpp"
#include "fast/device/context.hpp"
#include "fast/device/device.hpp"
#include "fast/device/tensor.hpp"

namespace assay::fast {
namespace {

TEST(TopLogProbs, RefusesWhatItCannotChoose) {
  const auto refused = [](int64_t width, int64_t chosen) {
    TopLogProbsParams<float> p;
    p.rows = 1;
    p.width = p.x_stride = width;
    p.chosen = chosen;
    EXPECT_THROW(top_log_probs_workspace_bytes(p), InputError) << width << " " << chosen;
    EXPECT_THROW(top_log_probs(p, nullptr), InputError) << width << " " << chosen;
  };
  refused(5, 6);
  refused(5, 0);
  refused(5000, 1025);
  refused(0, 1);
}

TEST(TopLogProbs, MaskedLogitsHaveNoShareAndNanSpoilsItsRowOnly) {
  if (!device_facts().is_usable) GTEST_SKIP() << device_facts().reason;
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr int64_t kWidth = 20000;  // three parts, of which the first is masked as a whole
  std::vector<float> logits(2 * kWidth, -kInfinity);
  logits[9000] = logits[19000] = 1;
  logits[19999] = 1 + std::log(2.0f);
  for (size_t i = kWidth; i < 2 * kWidth; ++i) logits[i] = 0;
  logits[kWidth] = logits[kWidth + 7] = std::nanf("");
  Context context;
  Arena arena("top_log_probs test", context.memory(), int64_t{1} << 20);
  TopLogProbsParams<float> p;
  p.x = upload<float>(arena, HostTensor({2, kWidth}, logits), "logits", context.stream()).data;
  p.rows = 2;
  p.width = p.x_stride = kWidth;
  p.chosen = 4;
  const Tensor<float> values = allocate<float>(arena, {2, 4}, "values");
  const Tensor<int64_t> ids = allocate<int64_t>(arena, {2, 4}, "ids");
  p.values = values.data;
  p.ids = ids.data;
  p.workspace = arena.allocate(static_cast<int64_t>(top_log_probs_workspace_bytes(p)), "workspace");
  top_log_probs(p, context.stream());
  std::vector<int64_t> places(8);
  check(cudaMemcpyAsync(places.data(), ids.data, 8 * sizeof(int64_t), cudaMemcpyDeviceToHost, context.stream()),
        "download");
  const HostTensor host = download(values, "values", context.stream());
  EXPECT_EQ(places, (std::vector<int64_t>{19999, 9000, 19000, 0, 0, 7, 1, 2}));
  EXPECT_NEAR(host.at(0), std::log(0.5), 1e-6);
  EXPECT_NEAR(host.at(1), std::log(0.25), 1e-6);
  EXPECT_NEAR(host.at(2), std::log(0.25), 1e-6);
  EXPECT_EQ(host.at(3), -kInfinity);
  for (int64_t i = 4; i < 8; ++i) EXPECT_TRUE(std::isnan(host.at(i))) << i;
  arena.check_guards();
}

}  // namespace
}  // namespace assay::fast
