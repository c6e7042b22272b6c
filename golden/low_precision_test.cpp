#include "golden/low_precision.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "cases/spec/error.hpp"

namespace assay::golden {
namespace {

constexpr int64_t kPositions = 20;

// Logits [20, 4], of which 1 and 3 are sampled: 10 p + 1 and 10 p + 3 at position p. Every floor is 1/1024, so the
// float32 bound is 8/1024 = 0.0078125.
Record logits() {
  Record record{.name = "logits", .shape = {4}, .positions = kPositions, .sample = {1, 3}};
  for (int64_t p = 0; p < kPositions; ++p) {
    record.values.push_back(static_cast<float>(10 * p + 1));
    record.values.push_back(static_cast<float>(10 * p + 3));
    record.norm.push_back(8);
    record.floor.push_back(1.0F / 1024);
    record.norm_floor.push_back(1.0F / 1024);
  }
  return record;
}

// P: 1 at every position, 3 at position 19.
PrecisionError original(std::vector<int64_t> marked = {}) {
  PrecisionError error{.compute = "bfloat16", .logits = std::vector<float>(kPositions, 1), .marked = std::move(marked)};
  error.logits.back() = 3;
  return error;
}

std::vector<LogitError> row_of(const std::vector<double>& errors, int64_t first_step = kPositions) {
  std::vector<LogitError> row;
  for (size_t p = 0; p < errors.size(); ++p) {
    const bool is_step = static_cast<int64_t>(p) >= first_step;
    row.push_back({.error = errors[p],
                   .index = 3,
                   .expected = 10,
                   .got = 10 + errors[p],
                   .norm_expected = 8,
                   .norm_got = 8,
                   .step = is_step ? static_cast<int64_t>(p) - first_step + 1 : 0,
                   .is_cached_step = is_step});
  }
  return row;
}

std::vector<double> errors_of(double each) { return std::vector<double>(kPositions, each); }

// k is 2, largest_k 3; p90 needs 20 positions.
LowPrecisionJudgement judge(const std::vector<LogitError>& row, const PrecisionError& p = original()) {
  return judge_low_precision(logits(), p, row, LowPrecisionRule{});
}

TEST(LowPrecision, ErrorsOfTheOriginalsOwnSizePass) {
  const LowPrecisionJudgement judgement = judge(row_of(errors_of(1)));
  EXPECT_FALSE(judgement.tally.first);
  EXPECT_EQ(judgement.hollow, "");
  EXPECT_TRUE(judgement.notes.empty());
  // Median and p90 of P are 1: 1 / (2 + 0.0078125).
  EXPECT_NEAR(judgement.tally.used, 0.498054, 1e-6);
  EXPECT_EQ(judgement.tally.used_by, "logits (median)");
}

TEST(LowPrecision, TheFloorIsAllowedWhereTheOriginalHasNoError) {
  PrecisionError exact = original();
  exact.logits.assign(kPositions, 0);
  EXPECT_FALSE(judge(row_of(errors_of(0.0078)), exact).tally.first);
  const auto first = judge(row_of(errors_of(0.0079)), exact).tally.first;
  ASSERT_TRUE(first);
  EXPECT_DOUBLE_EQ(first->bound, 0.0078125);
}

TEST(LowPrecision, MedianFailsWhenHalfOfThePositionsAreBeyondTwiceTheOriginals) {
  std::vector<double> errors = errors_of(0.5);
  for (size_t p = 10; p < 20; ++p) errors[p] = 2.5;
  EXPECT_EQ(judge(row_of(errors)).tally.first->what, "p90");  // rank 10 of 20 is still 0.5

  errors[4] = 2.25;
  const LowPrecisionJudgement judgement = judge(row_of(errors));
  const auto& first = judgement.tally.first;
  ASSERT_TRUE(first);
  EXPECT_EQ(first->probe, "logits");
  EXPECT_EQ(first->what, "median");
  EXPECT_EQ(first->position, 4);
  EXPECT_EQ(first->index, std::vector<int64_t>{3});
  EXPECT_DOUBLE_EQ(first->expected, 10);
  EXPECT_DOUBLE_EQ(first->got, 12.25);
  EXPECT_DOUBLE_EQ(first->bound, 2.0078125);
  EXPECT_EQ(first->bad, 11);
  EXPECT_EQ(first->of, 20);
  EXPECT_NE(first->detail.find("worst 2.5 at position 10"), std::string::npos) << first->detail;
}

TEST(LowPrecision, NinetiethPercentileFailsAtThreeOfTwentyAndNotAtTwo) {
  std::vector<double> errors = errors_of(0.5);
  errors[6] = errors[7] = 2.5;
  EXPECT_FALSE(judge(row_of(errors)).tally.first);  // rank 18 of 20 is 0.5, and the worst is below 3 * 3
  errors[12] = 2.5;
  const auto first = judge(row_of(errors)).tally.first;
  ASSERT_TRUE(first);
  EXPECT_EQ(first->what, "p90");
  EXPECT_EQ(first->position, 6);
  EXPECT_EQ(first->bad, 3);

  errors.resize(19);  // one position fewer: only the largest is left to see them, and it allows 3 * 1
  EXPECT_FALSE(judge(row_of(errors)).tally.first);
}

TEST(LowPrecision, LargestFailsAtOnePositionBeyondThreeTimesTheOriginalsWorst) {
  std::vector<double> errors = errors_of(0.5);
  errors[11] = 9;
  EXPECT_FALSE(judge(row_of(errors)).tally.first);
  errors[11] = 9.25;
  const auto first = judge(row_of(errors)).tally.first;
  ASSERT_TRUE(first);
  EXPECT_EQ(first->what, "largest");
  EXPECT_EQ(first->position, 11);
  EXPECT_DOUBLE_EQ(first->bound, 9.0078125);
  EXPECT_EQ(first->bad, 1);
}

TEST(LowPrecision, NormFailsForWhatTheSampleDoesNotHold) {
  std::vector<LogitError> row = row_of(errors_of(0.5));
  row[2].norm_error = 18;  // allowed: (3 * 3 + 0.0078125) * sqrt(4) = 18.015625
  EXPECT_FALSE(judge(row).tally.first);
  row[2].norm_error = 18.25;
  row[2].norm_got = 26.25;
  const auto first = judge(row).tally.first;
  ASSERT_TRUE(first);
  EXPECT_EQ(first->what, "norm");
  EXPECT_EQ(first->position, 2);
  EXPECT_TRUE(first->index.empty());
  EXPECT_DOUBLE_EQ(first->expected, 8);
  EXPECT_DOUBLE_EQ(first->got, 26.25);
  EXPECT_DOUBLE_EQ(first->bound, 18.015625);
}

// Twelve positions of prefill hide in each whole-row quantile what eight cached steps do.
TEST(LowPrecision, StepsFailByThemselves) {
  std::vector<double> errors = errors_of(0.25);
  PrecisionError p = original();
  for (size_t at = 0; at < 12; ++at) p.logits[at] = 8, errors[at] = 8;
  for (size_t at = 12; at < 20; ++at) errors[at] = 2.5;
  EXPECT_FALSE(judge(row_of(errors), p).tally.first);
  const auto median = judge(row_of(errors, 12), p).tally.first;
  ASSERT_TRUE(median);
  EXPECT_EQ(median->what, "median of steps");
  EXPECT_EQ(median->position, 12);
  EXPECT_EQ(median->step, 1);
  EXPECT_EQ(median->of, 8);

  // Nine steps of which two are wrong: rank 9 of 9 is p90 and the largest.
  errors = errors_of(0.25);
  for (size_t at = 0; at < 11; ++at) errors[at] = 8;
  for (size_t at = 11; at < 20; ++at) p.logits[at] = 1;
  errors[14] = errors[15] = 2.5;
  LowPrecisionRule of_few;
  of_few.least_for_p90 = 9;
  const auto p90 = judge_low_precision(logits(), p, row_of(errors, 11), of_few).tally.first;
  ASSERT_TRUE(p90);
  EXPECT_EQ(p90->what, "p90 of steps");
  EXPECT_EQ(p90->position, 14);

  // Ten steps of which one is wrong: rank 9 of 10 is right, the largest is not.
  errors[9] = 0.25;
  for (size_t at = 0; at < 10; ++at) p.logits[at] = 8;
  for (size_t at = 10; at < 20; ++at) p.logits[at] = 1, errors[at] = 0.25;
  errors[17] = 3.25;
  const auto largest = judge(row_of(errors, 10), p).tally.first;
  ASSERT_TRUE(largest);
  EXPECT_EQ(largest->what, "largest of steps");
  EXPECT_EQ(largest->position, 17);
}

TEST(LowPrecision, FewerThanEightStepsAreNotJudgedByThemselvesAndTheNoteSaysSo) {
  std::vector<double> errors = errors_of(0.25);
  PrecisionError p = original();
  for (size_t at = 0; at < 13; ++at) p.logits[at] = 8;
  for (size_t at = 13; at < 20; ++at) errors[at] = 7;
  const LowPrecisionJudgement judgement = judge(row_of(errors, 13), p);
  EXPECT_FALSE(judgement.tally.first);
  ASSERT_EQ(judgement.notes.size(), 1U);
  EXPECT_NE(judgement.notes[0].find("7 cached steps"), std::string::npos) << judgement.notes[0];
}

TEST(LowPrecision, MarkTaintsAllThatFollowsAndIsShown) {
  std::vector<double> errors = errors_of(0.5);
  for (size_t p = 12; p < 20; ++p) errors[p] = 100;
  ASSERT_TRUE(judge(row_of(errors)).tally.first);
  const LowPrecisionJudgement judgement = judge(row_of(errors), original({15, 12}));
  EXPECT_FALSE(judgement.tally.first);
  EXPECT_EQ(judgement.hollow, "");
  ASSERT_EQ(judgement.notes.size(), 1U);
  EXPECT_NE(judgement.notes[0].find("position 12: 8 of 20"), std::string::npos) << judgement.notes[0];
  EXPECT_NE(judgement.notes[0].find("100"), std::string::npos) << judgement.notes[0];

  errors[11] = 6.25;  // before the mark: P's worst there is 1, its 3 follows the mark
  const auto first = judge(row_of(errors), original({12})).tally.first;
  ASSERT_TRUE(first);
  EXPECT_EQ(first->what, "largest");
  EXPECT_DOUBLE_EQ(first->bound, 3.0078125);
  EXPECT_EQ(first->of, 12);
}

TEST(LowPrecision, MoreThanHalfMarkedOrFewerThanEightLeftIsHollow) {
  EXPECT_EQ(judge(row_of(errors_of(0.5)), original({10})).hollow, "");
  EXPECT_NE(judge(row_of(errors_of(0.5)), original({9})).hollow.find("11 of 20"), std::string::npos);
  EXPECT_EQ(judge(row_of(std::vector<double>(8, 0.5))).hollow, "");
  EXPECT_NE(judge(row_of(std::vector<double>(7, 0.5))).hollow.find("7 positions left"), std::string::npos);
  EXPECT_NE(judge(row_of(std::vector<double>(8, 0.5)), original({7})).hollow, "");
}

TEST(LowPrecision, TwoLegsHaveTheirFactor) {
  const auto judged = [](double error) {
    return judge_low_precision(logits(), original(), row_of(errors_of(error)), LowPrecisionRule{}, 1.5);
  };
  EXPECT_FALSE(judged(3.01).tally.first);  // 1.5 * 2.0078125 = 3.01171875
  EXPECT_TRUE(judged(3.02).tally.first);
}

TEST(LowPrecision, AnotherNumberOfErrorsIsTheCallersFault) {
  PrecisionError shorter = original();
  shorter.logits.pop_back();
  EXPECT_THROW(judge(row_of(errors_of(0.5)), shorter), InputError);
  EXPECT_THROW(judge(row_of(std::vector<double>(21, 0.5))), InputError);
}

// Columns 1 and 2 of row 1 hold positions 5 and 6.
HostTensor tensor(float changed) {
  std::vector<float> values(2 * 3 * 4, 0);
  const float rows[] = {0, 51, 0, 53, 0, 61, 0, changed};
  std::copy(std::begin(rows), std::end(rows), values.begin() + 12 + 4);
  return HostTensor({2, 3, 4}, values);
}

TEST(LowPrecision, MeasuresTheSampledLogits) {
  const HostTensor got = tensor(61.5);
  std::vector<LogitError> row;
  const Tally tally = measure_logits(logits(), {got, 1, 1}, 5, 2, row);
  EXPECT_FALSE(tally.first);
  EXPECT_EQ(tally.probes, 1);
  EXPECT_EQ(tally.elements, 4);
  EXPECT_DOUBLE_EQ(tally.used, 0);
  ASSERT_EQ(row.size(), 2U);
  EXPECT_DOUBLE_EQ(row[0].error, 0);
  EXPECT_DOUBLE_EQ(row[1].error, 1.5);
  EXPECT_EQ(row[1].index, 3);
  EXPECT_DOUBLE_EQ(row[1].expected, 63);
  EXPECT_DOUBLE_EQ(row[1].got, 61.5);
  EXPECT_DOUBLE_EQ(row[0].norm_got, std::sqrt(51.0 * 51 + 53 * 53));
  EXPECT_DOUBLE_EQ(row[0].norm_error, std::sqrt(51.0 * 51 + 53 * 53) - 8);
}

TEST(LowPrecision, NotANumberAndInfinityAreFindingsWithTheirPositionInTheSampleOrNot) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()})
    for (const size_t logit : {2U, 3U}) {
      HostTensor got = tensor(63);
      std::vector<float> values(got.values<float>().begin(), got.values<float>().end());
      values[12 + 8 + logit] = bad;
      std::vector<LogitError> row;
      const Tally tally = measure_logits(logits(), {HostTensor({2, 3, 4}, values), 1, 1}, 5, 2, row);
      ASSERT_TRUE(tally.first);
      EXPECT_EQ(tally.first->what, "not finite");
      EXPECT_EQ(tally.first->position, 6);
      EXPECT_EQ(tally.first->index, std::vector<int64_t>{static_cast<int64_t>(logit)});
      EXPECT_TRUE(std::isinf(tally.used));
      EXPECT_TRUE(row.empty());
    }
}

TEST(LowPrecision, WrongShapeIsAFinding) {
  std::vector<LogitError> row;
  const Tally tally = measure_logits(logits(), {HostTensor({1, 2, 5}, std::vector<float>(10, 0)), 0, 0}, 0, 2, row);
  ASSERT_TRUE(tally.first);
  EXPECT_EQ(tally.first->what, "shape");
  EXPECT_TRUE(row.empty());
}

TEST(LowPrecision, MeasuresEveryLogitOfTwoLegs) {
  const HostTensor left = tensor(63);
  std::vector<float> values(left.values<float>().begin(), left.values<float>().end());
  values[12 + 8 + 2] = 0.25;  // logit 2 of position 6: not in the sample
  std::vector<LogitError> row;
  const Tally tally = measure_leg_logits(logits(), {left, 1, 1}, {HostTensor({2, 3, 4}, values), 1, 1}, 5, 2, row);
  EXPECT_FALSE(tally.first);
  EXPECT_EQ(tally.elements, 8);
  ASSERT_EQ(row.size(), 2U);
  EXPECT_DOUBLE_EQ(row[1].error, 0.25);
  EXPECT_EQ(row[1].index, 2);
}

}  // namespace
}  // namespace assay::golden
