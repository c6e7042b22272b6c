#include "reference/ops/selective_scan.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "reference/testing/values.hpp"

namespace assay::reference {
namespace {

struct Inputs {
  at::Tensor x, dt, A, B, C, D, state;
};

Inputs inputs(int64_t rows, int64_t length, int64_t channels, int64_t size) {
  return {values({rows, length, channels}, 1),    values({rows, length, channels}, 2, 0.02, 1),
          values({channels, size}, 3, -3, -0.02), values({rows, length, size}, 4),
          values({rows, length, size}, 5),        values({channels}, 6),
          values({rows, channels, size}, 7)};
}

TEST(SelectiveScan, FollowsTheFormulaFromANonZeroState) {
  const int64_t rows = 2, length = 6, channels = 4, size = 3;
  const Inputs in = inputs(rows, length, channels, size);
  const SelectiveScan result = reference::selective_scan(in.x, in.dt, in.A, in.B, in.C, in.D, in.state);
  for (int64_t b = 0; b < rows; ++b)
    for (int64_t i = 0; i < channels; ++i) {
      std::vector<double> h;
      for (int64_t n = 0; n < size; ++n) h.push_back(element(in.state, {b, i, n}));
      for (int64_t t = 0; t < length; ++t) {
        const double x = element(in.x, {b, t, i}), dt = element(in.dt, {b, t, i});
        double y = element(in.D, {i}) * x;
        for (int64_t n = 0; n < size; ++n) {
          double& state = h[static_cast<size_t>(n)];
          state = std::exp(dt * element(in.A, {i, n})) * state + dt * element(in.B, {b, t, n}) * x;
          y += state * element(in.C, {b, t, n});
        }
        EXPECT_NEAR(element(result.y, {b, t, i}), y, 1e-13);
      }
      for (int64_t n = 0; n < size; ++n)
        EXPECT_NEAR(element(result.final_state, {b, i, n}), h[static_cast<size_t>(n)], 1e-13);
    }
}

TEST(SelectiveScan, AbsentStateIsZero) {
  const Inputs in = inputs(1, 3, 2, 3);
  const SelectiveScan absent = reference::selective_scan(in.x, in.dt, in.A, in.B, in.C, in.D);
  const at::Tensor zeros = at::zeros_like(in.state);
  EXPECT_EQ(difference(absent.y, reference::selective_scan(in.x, in.dt, in.A, in.B, in.C, in.D, zeros).y), 0);
}

TEST(SelectiveScan, EverySplitEqualsTheWhole) {
  const int64_t length = 7;
  const Inputs in = inputs(2, length, 4, 3);
  const SelectiveScan whole = reference::selective_scan(in.x, in.dt, in.A, in.B, in.C, in.D, in.state);
  for (int64_t split = 1; split < length; ++split) {
    const auto run = [&](int64_t first, int64_t count, const at::Tensor& state) {
      const auto part = [&](const at::Tensor& sequence) { return sequence.narrow(1, first, count); };
      return reference::selective_scan(part(in.x), part(in.dt), in.A, part(in.B), part(in.C), in.D, state);
    };
    const SelectiveScan first = run(0, split, in.state);
    const SelectiveScan second = run(split, length - split, first.final_state);
    EXPECT_LT(difference(at::cat({first.y, second.y}, 1), whole.y), 1e-14);
    EXPECT_LT(difference(second.final_state, whole.final_state), 1e-14);
  }
}

}  // namespace
}  // namespace assay::reference
