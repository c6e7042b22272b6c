#include "runners/bitwise.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "cases/spec/error.hpp"

namespace assay {
namespace {

// Two rows, the second behind a column of padding; a call of two columns and one of one; a growing state.
struct Two {
  Leg leg;
  LegPlan plan;
  LegTrace trace;

  Two() {
    leg.name = "leg";
    plan.leg = &leg;
    plan.name = "leg";
    trace.plan = &plan;
    trace.rows = {row("a", {4, 5, 6}, 0), row("b", {7, 8}, 1)};
    trace.calls = {call(0, 0, 2), call(1, 2, 1)};
    trace.states = {{"layers.1.state", HostTensor({2, 2}, std::vector<float>{1, 2, 3, 4})},
                    {"layers.1.keys", values({2, 2, 3, 2}, 50)}};
  }
  Two(const Two&) = delete;  // trace points into it
  Two& operator=(const Two&) = delete;
  static RowPlan row(const std::string& input, std::vector<int64_t> tokens, int64_t pad) {
    RowPlan plan;
    plan.input = input;
    plan.tokens = std::move(tokens);
    plan.pad = pad;
    return plan;
  }
  static HostTensor values(const Shape& shape, float first) {
    HostTensor tensor(DType::kF32, shape);
    for (float& value : tensor.values<float>()) value = first++;
    return tensor;
  }
  static CallRecord call(int64_t step, int64_t first, int64_t columns) {
    CallRecord record;
    record.step = step;
    record.first = first;
    record.columns = columns;
    record.trace.probes = {{"layers.0.out", values({2, columns, 2, 2}, 1)}, {"logits", values({2, columns, 3}, 100)}};
    return record;
  }
  float& at(size_t call, size_t probe, size_t element) {
    return trace.calls[call].trace.probes[probe].value.values<float>()[element];
  }
};

const std::vector<ProbeSpec> kTable = {
    {.name = "layers.0.out", .shape = {2, 2}, .layer = 0},
    {.name = "layers.1.keys", .shape = {2, 2}, .is_state = true, .layer = 1, .follows = "layers.1.k"}};

std::optional<golden::Finding> first_of(const Two& a, const Two& b) {
  return compare_bits(a.trace, b.trace, kTable).first;
}

TEST(Bitwise, EqualLegsAreEqual) {
  const Two a, b;
  const BitwiseResult result = compare_bits(a.trace, b.trace, kTable);
  EXPECT_FALSE(result.first);
  // Row a: 3 columns of 4 + 3, states of 2 and 12; row b: 2 columns, states of 2 and, without the padded column, 8.
  EXPECT_EQ(result.elements, 3 * 7 + 2 + 12 + 2 * 7 + 2 + 8);
}

TEST(Bitwise, TheElementIsNamed) {
  const Two a;
  Two b;
  b.at(0, 0, 4 * 3 + 3) = std::nextafter(16.0F, 17.0F);  // row 1, column 1, [1, 1]
  const auto first = first_of(a, b);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->probe, "layers.0.out");
  EXPECT_EQ(first->what, "bits");
  EXPECT_EQ(first->layer, 0);
  EXPECT_EQ(first->step, 0);
  EXPECT_EQ(first->row, 1);
  EXPECT_EQ(first->position, 0);
  EXPECT_EQ(first->index, (std::vector<int64_t>{1, 1}));
  EXPECT_EQ(first->expected, 16);
  EXPECT_EQ(first->got, std::nextafter(16.0F, 17.0F));
  EXPECT_EQ(first->bad, 1);
  EXPECT_EQ(first->of, 4);
}

TEST(Bitwise, PaddedColumnsDoNotCount) {
  const Two a;
  Two b;
  b.at(0, 0, 4 * 2) = 99;                                // row 1, column 0: padding
  b.trace.states[1].value.values<float>()[12 + 6] = 99;  // row 1, head 1, column 0
  EXPECT_FALSE(first_of(a, b));
  b.trace.states[1].value.values<float>()[12 + 6 + 3] = 98;  // row 1, head 1, column 1, lane 1
  const auto first = first_of(a, b);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->probe, "layers.1.keys");
  EXPECT_EQ(first->index, (std::vector<int64_t>{1, 1, 1}));
  EXPECT_EQ(first->layer, 1);
}

TEST(Bitwise, ASignOfZeroCountsAndAPayloadOfNanDoesNot) {
  Two a, b;
  a.at(1, 1, 2) = std::bit_cast<float>(0x7fc00001U);
  b.at(1, 1, 2) = std::bit_cast<float>(0xffc00002U);
  EXPECT_FALSE(first_of(a, b));
  b.at(1, 1, 2) = 1;
  ASSERT_TRUE(first_of(a, b)) << "NaN against a number";
  Two plus, minus;
  plus.at(1, 1, 0) = 0.0F;
  minus.at(1, 1, 0) = -0.0F;
  const auto first = first_of(plus, minus);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->probe, "logits");
  EXPECT_EQ(first->position, 2);
  EXPECT_TRUE(std::signbit(first->got));
  EXPECT_FALSE(std::signbit(first->expected));
}

TEST(Bitwise, AMissingProbeAndAnotherShapeAreFound) {
  const Two a;
  Two b;
  b.trace.calls[0].trace.probes.pop_back();
  EXPECT_EQ(first_of(a, b)->what, "missing");
  EXPECT_EQ(first_of(b, a)->what, "missing");
  Two wider;
  wider.trace.states[0].value = HostTensor(DType::kF32, {2, 3});
  EXPECT_EQ(first_of(a, wider)->what, "shape");
  Two empty;
  empty.trace.calls.clear();
  EXPECT_THROW(first_of(a, empty), HarnessError);
}

TEST(Bitwise, OtherTokensAreAnotherQuestion) {
  const Two a;
  Two b;
  b.trace.rows[0].tokens[2] = 1;  // from position 2 on row a's calls are not compared, nor its states
  b.at(1, 0, 0) = 77;
  b.trace.states[0].value.values<float>()[0] = 77;
  EXPECT_FALSE(first_of(a, b));
}

}  // namespace
}  // namespace assay
