#include "reference/ops/gated_delta_rule.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "reference/ops/l2norm.hpp"
#include "reference/ops/segment_sums.hpp"
#include "reference/testing/values.hpp"

namespace assay::reference {
namespace {

struct Inputs {
  at::Tensor q, k, v, g, beta, state;
};

// 2 key heads of 5, 6 value heads of 3.
constexpr int64_t kKeyHeads = 2, kHeads = 6, kKeys = 5, kLanes = 3;

Inputs inputs(int64_t rows, int64_t length, double g_low = -3, double g_high = -0.001) {
  return {l2norm(values({rows, length, kKeyHeads, kKeys}, 1), 1e-6) / std::sqrt(5.0),
          l2norm(values({rows, length, kKeyHeads, kKeys}, 2), 1e-6),
          values({rows, length, kHeads, kLanes}, 3),
          values({rows, length, kHeads}, 4, g_low, g_high),
          values({rows, length, kHeads}, 5, 0.1, 1),
          values({rows, kHeads, kKeys, kLanes}, 6)};
}

GatedDeltaRule recurrent(const Inputs& in) {
  return gated_delta_rule_recurrent(in.q, in.k, in.v, in.g, in.beta, in.state);
}
GatedDeltaRule chunked(const Inputs& in, int64_t chunk_size) {
  return gated_delta_rule_chunked(in.q, in.k, in.v, in.g, in.beta, in.state, chunk_size);
}

Inputs part(const Inputs& in, int64_t first, int64_t count, const at::Tensor& state) {
  const auto columns = [&](const at::Tensor& sequence) { return sequence.narrow(1, first, count); };
  return {columns(in.q), columns(in.k), columns(in.v), columns(in.g), columns(in.beta), state};
}

at::Tensor tensor(std::initializer_list<double> numbers, const std::vector<int64_t>& shape) {
  return at::tensor(std::vector<double>(numbers), at::kDouble).reshape(shape);
}

// One head, dk = 2, dv = 3, decay 1/2, worked by hand.
//   t = 0: k = (1, 0), v = (2, 4, 6), beta 1/2, S = 0:       e = (1, 2, 3),   S = [1 2 3; 0 0 0]
//          q = (1, 1):                                       o = (1, 2, 3)
//   t = 1: k = (0.6, 0.8), v = (1.3, 0.6, 1.9), beta 1:      S = [.5 1 1.5; 0 0 0], held = (.3, .6, .9), e = (1, 0, 1)
//          S = [1.1 1 2.1; .8 0 .8], q = (1, 2):             o = (2.7, 1, 3.7)
TEST(GatedDeltaRule, TwoColumnsByHandInBothForms) {
  const double half = std::log(0.5);
  Inputs in{tensor({1, 1, 1, 2}, {1, 2, 1, 2}),
            tensor({1, 0, 0.6, 0.8}, {1, 2, 1, 2}),
            tensor({2, 4, 6, 1.3, 0.6, 1.9}, {1, 2, 1, 3}),
            tensor({half, half}, {1, 2, 1}),
            tensor({0.5, 1}, {1, 2, 1}),
            at::Tensor()};
  const at::Tensor o = tensor({1, 2, 3, 2.7, 1, 3.7}, {1, 2, 1, 3});
  const at::Tensor state = tensor({1.1, 1, 2.1, 0.8, 0, 0.8}, {1, 1, 2, 3});
  for (const int64_t chunk_size : {0, 1, 2, 64}) {  // 0: the recurrence
    const GatedDeltaRule result = chunk_size == 0 ? recurrent(in) : chunked(in, chunk_size);
    EXPECT_LT(difference(result.o, o), 1e-14) << chunk_size;
    EXPECT_LT(difference(result.final_state, state), 1e-14) << chunk_size;
  }
}

TEST(GatedDeltaRule, RecurrentFollowsTheFormula) {
  const int64_t rows = 2, length = 4;
  const Inputs in = inputs(rows, length);
  const GatedDeltaRule result = recurrent(in);
  for (int64_t b = 0; b < rows; ++b)
    for (int64_t h = 0; h < kHeads; ++h)
      for (int64_t j = 0; j < kLanes; ++j) {  // lanes of the value do not meet
        const int64_t key_head = h < 3 ? 0 : 1;
        std::vector<double> s;
        for (int64_t i = 0; i < kKeys; ++i) s.push_back(element(in.state, {b, h, i, j}));
        for (int64_t t = 0; t < length; ++t) {
          double held = 0, o = 0;
          for (int64_t i = 0; i < kKeys; ++i) {
            s[static_cast<size_t>(i)] *= std::exp(element(in.g, {b, t, h}));
            held += s[static_cast<size_t>(i)] * element(in.k, {b, t, key_head, i});
          }
          const double e = element(in.beta, {b, t, h}) * (element(in.v, {b, t, h, j}) - held);
          for (int64_t i = 0; i < kKeys; ++i) {
            s[static_cast<size_t>(i)] += element(in.k, {b, t, key_head, i}) * e;
            o += s[static_cast<size_t>(i)] * element(in.q, {b, t, key_head, i});
          }
          EXPECT_NEAR(element(result.o, {b, t, h, j}), o, 1e-13);
        }
        for (int64_t i = 0; i < kKeys; ++i)
          EXPECT_NEAR(element(result.final_state, {b, h, i, j}), s[static_cast<size_t>(i)], 1e-13);
      }
}

TEST(GatedDeltaRule, ChunkedEqualsRecurrentAtEveryEdgeLength) {
  for (const int64_t chunk_size : {1, 4, 8, 64})
    for (const int64_t length : {int64_t{1}, chunk_size - 1, chunk_size, chunk_size + 1, 3 * chunk_size + 1}) {
      if (length < 1) continue;
      const Inputs in = inputs(2, length, -0.3);
      const GatedDeltaRule expected = recurrent(in), result = chunked(in, chunk_size);
      EXPECT_LT(difference(result.o, expected.o), 1e-12) << "Q " << chunk_size << ", L " << length;
      EXPECT_LT(difference(result.final_state, expected.final_state), 1e-12) << "Q " << chunk_size << ", L " << length;
    }
}

TEST(GatedDeltaRule, AbsentStateIsZeroInBothForms) {
  Inputs in = inputs(1, 9);
  in.state = at::zeros_like(in.state);
  const GatedDeltaRule expected = recurrent(in);
  in.state = at::Tensor();
  EXPECT_EQ(difference(recurrent(in).o, expected.o), 0);
  EXPECT_LT(difference(chunked(in, 4).o, expected.o), 1e-13);
}

// With one key for ever, no decay and beta = 1 the state holds exactly the last value: each correction takes the one
// before it back. The system of a chunk is then all ones below its diagonal.
TEST(GatedDeltaRule, ARepeatedKeyIsOverwritten) {
  Inputs in = inputs(1, 20);
  in.k = in.k.narrow(1, 0, 1).expand_as(in.k);
  in.g = at::zeros_like(in.g);
  in.beta = at::ones_like(in.beta);
  in.state = at::Tensor();
  const at::Tensor keys = in.k.repeat_interleave(3, 2), queries = in.q.repeat_interleave(3, 2);
  const at::Tensor expected = in.v * (keys * queries).sum(-1, true);
  for (const int64_t chunk_size : {0, 8, 64}) {
    const GatedDeltaRule result = chunk_size == 0 ? recurrent(in) : chunked(in, chunk_size);
    EXPECT_LT(difference(result.o, expected), 2e-5)
        << chunk_size;  // epsilon of the norm: keys are not quite of length 1
    const at::Tensor state = keys.select(1, 19).unsqueeze(3) * in.v.select(1, 19).unsqueeze(2);
    EXPECT_LT(difference(result.final_state, state), 2e-5) << chunk_size;
  }
  EXPECT_LT(difference(chunked(in, 64).o, recurrent(in).o), 1e-13);
}

// A decay of e^-90 a column leaves only the column itself, and neither form makes a 0 / 0 or an infinity of it.
TEST(GatedDeltaRule, StrongDecayLeavesOnlyTheColumn) {
  Inputs in = inputs(2, 70);
  in.g = at::full_like(in.g, -90);
  for (const bool is_float : {false, true}) {
    Inputs some = in;
    if (is_float)
      for (at::Tensor* each : {&some.q, &some.k, &some.v, &some.g, &some.beta, &some.state})
        *each = each->to(at::kFloat);
    const at::Tensor keys = in.k.repeat_interleave(3, 2), queries = in.q.repeat_interleave(3, 2);
    const at::Tensor expected = in.v * in.beta.unsqueeze(3) * (keys * queries).sum(-1, true);
    const double bound = is_float ? 1e-6 : 1e-14;
    EXPECT_LT(difference(recurrent(some).o, expected), bound);
    EXPECT_LT(difference(chunked(some, 64).o, expected), bound);
    EXPECT_LT(difference(chunked(some, 64).final_state, recurrent(some).final_state), bound);
  }
}

TEST(GatedDeltaRule, SlowDecayCarriesTheStateAcrossChunks) {
  Inputs gentle = inputs(1, 150, -0.004, -0.001);
  gentle.beta = gentle.beta * 0.02;
  Inputs cold = gentle;
  cold.state = at::Tensor();
  // The first state still shows in the last column, so a chunk that dropped it would be seen.
  EXPECT_GT(difference(recurrent(cold).o.select(1, 149), recurrent(gentle).o.select(1, 149)), 0.01);
  EXPECT_LT(difference(chunked(gentle, 64).o, recurrent(gentle).o), 1e-12);
}

TEST(GatedDeltaRule, EverySplitEqualsTheWholeInBothForms) {
  const int64_t length = 9;
  const Inputs in = inputs(2, length, -0.5);
  const GatedDeltaRule whole = recurrent(in);
  for (int64_t split = 1; split < length; ++split)
    for (const int64_t chunk_size : {0, 4}) {
      const auto run = [&](const Inputs& some) {
        return chunk_size == 0 ? recurrent(some) : chunked(some, chunk_size);
      };
      const GatedDeltaRule first = run(part(in, 0, split, in.state));
      const GatedDeltaRule second = run(part(in, split, length - split, first.final_state));
      EXPECT_LT(difference(at::cat({first.o, second.o}, 1), whole.o), 1e-13);
      EXPECT_LT(difference(second.final_state, whole.final_state), 1e-13);
    }
}

TEST(L2Norm, SumOfSquaresNotMean) {
  const at::Tensor y = l2norm(tensor({3, 4, 0, 0}, {2, 2}), 0.0001);
  EXPECT_NEAR(element(y, {0, 0}), 3 / std::sqrt(25.0001), 1e-15);
  EXPECT_NEAR(element(y, {0, 1}), 4 / std::sqrt(25.0001), 1e-15);
  EXPECT_EQ(element(y, {1, 0}), 0);
}

TEST(SegmentSums, OfOneThroughThree) {
  const at::Tensor sums = segment_sums(tensor({1, 2, 3}, {1, 1, 3}));
  EXPECT_EQ(difference(sums, tensor({0, 0, 0, 2, 0, 0, 5, 3, 0}, {1, 1, 3, 3})), 0);
}

}  // namespace
}  // namespace assay::reference
