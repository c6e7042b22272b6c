#include "reference/ops/ssd.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "reference/testing/values.hpp"

namespace assay::reference {
namespace {

struct Inputs {
  at::Tensor x, dt, A, B, C, D, state;
};

// 6 heads of 3 in 2 groups, N = 5; A from fast decay to one that keeps 98 % over 20 steps.
constexpr int64_t kHeads = 6, kLanes = 3, kGroups = 2, kSize = 5;

Inputs inputs(int64_t rows, int64_t length, double a_low = -4, double a_high = -0.002) {
  return {values({rows, length, kHeads, kLanes}, 1), values({rows, length, kHeads}, 2, 0.02, 1),
          values({kHeads}, 3, a_low, a_high),        values({rows, length, kGroups, kSize}, 4),
          values({rows, length, kGroups, kSize}, 5), values({kHeads}, 6),
          values({rows, kHeads, kLanes, kSize}, 7)};
}

Ssd recurrent(const Inputs& in) { return ssd_recurrent(in.x, in.dt, in.A, in.B, in.C, in.D, in.state); }
Ssd chunked(const Inputs& in, int64_t chunk_size) {
  return ssd_chunked(in.x, in.dt, in.A, in.B, in.C, in.D, chunk_size, in.state);
}

Inputs part(const Inputs& in, int64_t first, int64_t count, const at::Tensor& state) {
  const auto columns = [&](const at::Tensor& sequence) { return sequence.narrow(1, first, count); };
  return {columns(in.x), columns(in.dt), in.A, columns(in.B), columns(in.C), in.D, state};
}

TEST(Ssd, RecurrentFollowsTheFormula) {
  const int64_t rows = 2, length = 4;
  const Inputs in = inputs(rows, length);
  const Ssd result = recurrent(in);
  for (int64_t b = 0; b < rows; ++b)
    for (int64_t h = 0; h < kHeads; ++h)
      for (int64_t p = 0; p < kLanes; ++p) {
        const int64_t g = h < 3 ? 0 : 1;  // neighbouring heads share a group
        std::vector<double> s;
        for (int64_t n = 0; n < kSize; ++n) s.push_back(element(in.state, {b, h, p, n}));
        for (int64_t t = 0; t < length; ++t) {
          const double x = element(in.x, {b, t, h, p}), dt = element(in.dt, {b, t, h});
          double y = element(in.D, {h}) * x;
          for (int64_t n = 0; n < kSize; ++n) {
            double& state = s[static_cast<size_t>(n)];
            state = std::exp(dt * element(in.A, {h})) * state + dt * x * element(in.B, {b, t, g, n});
            y += state * element(in.C, {b, t, g, n});
          }
          EXPECT_NEAR(element(result.y, {b, t, h, p}), y, 1e-13);
        }
        for (int64_t n = 0; n < kSize; ++n)
          EXPECT_NEAR(element(result.final_state, {b, h, p, n}), s[static_cast<size_t>(n)], 1e-13);
      }
}

TEST(Ssd, ChunkedEqualsRecurrentAtEveryEdgeLength) {
  for (const int64_t chunk_size : {1, 4, 8})
    for (const int64_t length : {int64_t{1}, chunk_size - 1, chunk_size, chunk_size + 1, 3 * chunk_size + 1}) {
      if (length < 1) continue;
      const Inputs in = inputs(2, length);
      const Ssd expected = recurrent(in), result = chunked(in, chunk_size);
      EXPECT_LT(difference(result.y, expected.y), 1e-13) << "Q " << chunk_size << ", L " << length;
      EXPECT_LT(difference(result.final_state, expected.final_state), 1e-13) << "Q " << chunk_size << ", L " << length;
    }
}

TEST(Ssd, AbsentStateIsZeroInBothForms) {
  Inputs in = inputs(1, 9);
  in.state = at::zeros_like(in.state);
  const Ssd expected = recurrent(in);
  in.state = at::Tensor();
  EXPECT_EQ(difference(recurrent(in).y, expected.y), 0);
  EXPECT_LT(difference(chunked(in, 4).y, expected.y), 1e-13);
}

TEST(Ssd, SlowDecayCarriesTheStateAcrossManyChunks) {
  const Inputs in = inputs(1, 200, -0.02, -0.01);
  Inputs cold = in;
  cold.state = at::Tensor();
  const Ssd expected = recurrent(in);
  // The first state still shows in the last column, so a chunk that dropped it would be seen.
  EXPECT_GT(difference(recurrent(cold).y.select(1, 199), expected.y.select(1, 199)), 0.01);
  EXPECT_LT(difference(chunked(in, 8).y, expected.y), 1e-12);
}

TEST(Ssd, FastDecayNeitherOverflowsNorLosesDigitsInFloat32) {
  Inputs in = inputs(2, 64, -40, -10);
  const Ssd exact = recurrent(in);
  for (at::Tensor* tensor : {&in.x, &in.dt, &in.A, &in.B, &in.C, &in.D, &in.state}) *tensor = tensor->to(at::kFloat);
  EXPECT_LT(difference(recurrent(in).y, exact.y), 2e-5);
  EXPECT_LT(difference(chunked(in, 64).y, exact.y), 2e-5);
}

TEST(Ssd, EverySplitEqualsTheWholeInBothForms) {
  const int64_t length = 9;
  const Inputs in = inputs(2, length);
  const Ssd whole = recurrent(in);
  for (int64_t split = 1; split < length; ++split)
    for (const int64_t chunk_size : {0, 4}) {  // 0: the recurrence
      const auto run = [&](const Inputs& some) {
        return chunk_size == 0 ? recurrent(some) : chunked(some, chunk_size);
      };
      const Ssd first = run(part(in, 0, split, in.state));
      const Ssd second = run(part(in, split, length - split, first.final_state));
      EXPECT_LT(difference(at::cat({first.y, second.y}, 1), whole.y), 1e-13);
      EXPECT_LT(difference(second.final_state, whole.final_state), 1e-13);
    }
}

}  // namespace
}  // namespace assay::reference
