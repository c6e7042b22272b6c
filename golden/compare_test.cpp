#include "golden/compare.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "cases/spec/error.hpp"

namespace assay::golden {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

// Three positions of [2, 3], elements 1 and 4 kept, every number exact in float32:
//   position 0   0 3 0 / 0 4 0     norm 5
//   position 1   0 0 2 / 0 0 0     norm 2
//   position 2   0 6 0 / 0 8 0     norm 10
// With factor 8 and floors of 1/64 (the median), 1/64 and 1/32 the bounds are 1/8, 1/8 and 1/4.
Record small() {
  return {.name = "layers.2.mixer.ssd",
          .shape = {2, 3},
          .positions = 3,
          .sample = {1, 4},
          .values = {3, 4, 0, 0, 6, 8},
          .norm = {5, 2, 10},
          .floor = {1 / 64.f, 1 / 64.f, 1 / 32.f},
          .norm_floor = {1 / 128.f, 1 / 64.f, 1 / 64.f},
          .scale = 8};
}
// The rule for vectors long enough that each position's floor means something; small() is short for legibility only.
constexpr Rule kQuartile{.few = 0};

// As batch row 1 of 2, columns 1 to 3 of 4; all else is NaN, which nobody may look at.
constexpr int64_t kRow = 1, kColumn = 1;
size_t flat(int64_t position, int64_t element) { return static_cast<size_t>(((4 + kColumn) + position) * 6 + element); }
HostTensor right() {
  std::vector<float> values(2 * 4 * 6, kNaN);
  for (int64_t p = 0; p < 3; ++p)
    for (int64_t i = 0; i < 6; ++i) values[flat(p, i)] = 0;
  values[flat(0, 1)] = 3, values[flat(0, 4)] = 4;
  values[flat(1, 2)] = 2;
  values[flat(2, 1)] = 6, values[flat(2, 4)] = 8;
  return HostTensor({2, 4, 2, 3}, values);
}
HostTensor with(int64_t position, int64_t element, float value) {
  HostTensor tensor = right();
  tensor.values<float>()[flat(position, element)] = value;
  return tensor;
}
Tally compare(const HostTensor& got, int64_t position = 0, int64_t count = 3) {
  const Record record = small();
  return compare_sequence(record, bounds_of(record, kQuartile), got, kRow, kColumn + position, position, count);
}

TEST(Bounds, AreTheFactorTimesTheLargestOfTheFloors) {
  const Bounds bounds = bounds_of(small(), kQuartile);
  EXPECT_EQ(bounds.element, (std::vector<double>{0.125, 0.125, 0.25}));
  // Position 0: the median norm floor 1/64. Position 2: the elements' floor 1/32.
  EXPECT_EQ(bounds.norm, (std::vector<double>{0.125, 0.125, 0.25}));
}

TEST(Bounds, MedianProtectsALuckyZero) {
  Record record = small();
  record.floor = {0, 1 / 64.f, 1 / 32.f};
  record.norm_floor = {0, 1 / 16.f, 1 / 8.f};
  const Bounds bounds = bounds_of(record, kQuartile);
  EXPECT_EQ(bounds.element[0], 0.125);
  EXPECT_EQ(bounds.norm[0], 0.5);
}

TEST(Bounds, OfAStateGrowWithTheRootOfItsSteps) {
  Record record{.name = "s", .shape = {1}, .positions = 1, .values = {2}, .norm = {2}, .floor = {0}, .norm_floor = {0}};
  record.scale = 2;
  const double few = bounds_of(record, kQuartile, 16).element[0];
  EXPECT_EQ(few, bounds_of(record, kQuartile).element[0]);
  EXPECT_DOUBLE_EQ(bounds_of(record, kQuartile, 64).element[0], 2 * few);
  EXPECT_DOUBLE_EQ(bounds_of(record, kQuartile, 144).norm[0], 3 * bounds_of(record, kQuartile, 1).norm[0]);
  record.floor = {1};
  EXPECT_EQ(bounds_of(record, kQuartile, 64).element[0], 8.0);
}

TEST(Bounds, AreNeverBelowAFewUlpOfTheScale) {
  Record record = small();
  record.floor = record.norm_floor = {0, 0, 0};
  const Bounds bounds = bounds_of(record, kQuartile);
  // 8 * 4 * 2^-23 = 2^-18, times the scale 8 or the position's own norm.
  EXPECT_EQ(bounds.element, (std::vector<double>(3, 0x1p-15)));
  EXPECT_EQ(bounds.norm, (std::vector<double>{5 * 0x1p-18, 2 * 0x1p-18, 10 * 0x1p-18}));
}

TEST(Bounds, EvenNumbersOfPositionsHaveAMedianBetween) {
  Record record = small();
  record.positions = 2;
  record.floor = {1 / 64.f, 3 / 64.f};
  record.norm_floor = {0, 0};
  record.norm = {5, 2};
  EXPECT_EQ(bounds_of(record, kQuartile).element, (std::vector<double>{0.25, 0.375}));
}

TEST(Bounds, TypicalIsTheUpperQuartileOfASequenceAndTheMedianOfAState) {
  Record record = small();
  record.positions = 5;
  record.floor = {5 / 64.f, 1 / 64.f, 4 / 64.f, 2 / 64.f, 3 / 64.f};
  record.norm_floor = record.norm = {0, 0, 0, 0, 0};
  EXPECT_EQ(bounds_of(record, kQuartile).element, (std::vector<double>{0.625, 0.5, 0.5, 0.5, 0.5}));
  EXPECT_EQ(bounds_of(record, kQuartile, 1).element, (std::vector<double>{0.625, 0.375, 0.5, 0.375, 0.375}));
}

TEST(Bounds, TypicalIsTheLargestOfASequenceOfShortVectors) {
  Record record = small();
  record.shape = {4, 4};
  record.positions = 5;
  record.floor = {5 / 64.f, 1 / 64.f, 4 / 64.f, 2 / 64.f, 3 / 64.f};
  record.norm_floor = record.norm = {0, 0, 0, 0, 0};
  EXPECT_EQ(bounds_of(record, {}).element, (std::vector<double>(5, 0.625)));
  EXPECT_EQ(bounds_of(record, {}, 1).element, (std::vector<double>{0.625, 0.375, 0.5, 0.375, 0.375}));
}

TEST(Bounds, UlpsGrowWithTheRootOfALongSum) {
  EXPECT_EQ(at_width({}, 256).ulps, Rule().ulps);
  EXPECT_EQ(at_width({}, 4096).ulps, 4 * Rule().ulps);
  EXPECT_EQ(at_width({}, 4096).factor, Rule().factor);
}

TEST(Bounds, RefuseFloorsThatWouldPassAnything) {
  Record record = small();
  record.floor[1] = kInf;
  EXPECT_THROW(bounds_of(record, kQuartile), InputError);
  record = small();
  record.scale = kNaN;
  EXPECT_THROW(bounds_of(record, kQuartile), InputError);
  record = small();
  record.norm_floor.pop_back();
  EXPECT_THROW(bounds_of(record, kQuartile), InputError);
}

TEST(CompareSequence, PassesTheRightTensorAndCounts) {
  const Tally tally = compare(right());
  EXPECT_FALSE(tally.first);
  EXPECT_EQ(tally.probes, 1);
  EXPECT_EQ(tally.elements, 6);
  EXPECT_EQ(tally.used, 0);
}

TEST(CompareSequence, DifferenceEqualToTheBoundPassesTheNextOneFails) {
  // Element 1 of position 1 is kept and 0: 1/8 is the bound; the norm moves from 2 to 2.0039.
  const Tally at = compare(with(1, 1, 0.125f));
  EXPECT_FALSE(at.first);
  EXPECT_EQ(at.used, 1);
  EXPECT_EQ(at.used_by, "layers.2.mixer.ssd");
  const float above = std::nextafter(0.125f, 1.f);
  const Tally beyond = compare(with(1, 1, above));
  ASSERT_TRUE(beyond.first);
  EXPECT_EQ(beyond.first->what, "value");
  EXPECT_GT(beyond.used, 1);
  EXPECT_EQ(compare(with(1, 1, -above)).first->got, -above);
}

TEST(CompareSequence, FindingSaysWhereAndHowMuch) {
  HostTensor got = with(1, 4, 0.5f);
  got.values<float>()[flat(2, 1)] = 7;
  const Tally tally = compare(got);
  ASSERT_TRUE(tally.first);
  EXPECT_EQ(tally.first->probe, "layers.2.mixer.ssd");
  EXPECT_EQ(tally.first->layer, 2);
  EXPECT_EQ(tally.first->position, 1);
  EXPECT_EQ(tally.first->index, (std::vector<int64_t>{1, 1}));
  EXPECT_EQ(tally.first->expected, 0);
  EXPECT_EQ(tally.first->got, 0.5);
  EXPECT_EQ(tally.first->bound, 0.125);
  EXPECT_EQ(tally.first->bad, 2);
  EXPECT_EQ(tally.first->of, 6);
  EXPECT_EQ(tally.used, 4);  // 0.5 / 0.125, and 1 / 0.25 elsewhere
}

TEST(CompareSequence, NormCatchesAFaultOutsideTheSample) {
  // Element 5 is not kept: the norm becomes 13 instead of 5.
  const Tally tally = compare(with(0, 5, 12));
  ASSERT_TRUE(tally.first);
  EXPECT_EQ(tally.first->what, "norm");
  EXPECT_TRUE(tally.first->index.empty());
  EXPECT_EQ(tally.first->position, 0);
  EXPECT_EQ(tally.first->expected, 5);
  EXPECT_EQ(tally.first->got, 13);
  EXPECT_EQ(tally.first->bad, 1);
  EXPECT_EQ(tally.first->of, 3);
  EXPECT_EQ(tally.used, 64);
}

TEST(CompareSequence, NormOfAnEarlierPositionComesBeforeAValueOfALaterOne) {
  HostTensor got = with(0, 5, 12);
  got.values<float>()[flat(1, 1)] = 1;
  EXPECT_EQ(compare(got).first->what, "norm");
  got = with(1, 5, 12);
  got.values<float>()[flat(1, 4)] = 1;
  EXPECT_EQ(compare(got).first->what, "value");
}

TEST(CompareSequence, NotFiniteIsFoundOutsideTheSampleAndBeforeBounds) {
  for (const float wrong : {kNaN, kInf, -kInf}) {
    HostTensor got = with(2, 0, wrong);
    got.values<float>()[flat(0, 1)] = 100;
    const Tally tally = compare(got);
    ASSERT_TRUE(tally.first);
    EXPECT_EQ(tally.first->what, "not finite");
    EXPECT_EQ(tally.first->position, 2);
    EXPECT_EQ(tally.first->index, (std::vector<int64_t>{0, 0}));
    EXPECT_TRUE(std::isnan(tally.first->expected));
    EXPECT_FALSE(tally.first->detail.empty());
    EXPECT_EQ(tally.first->bad, 1);
    EXPECT_EQ(tally.first->of, 18);
    EXPECT_EQ(tally.used, kInf);
  }
}

TEST(CompareSequence, NotFiniteInTheSampleNamesTheExpectedValue) {
  const Tally tally = compare(with(0, 4, kNaN));
  ASSERT_TRUE(tally.first);
  EXPECT_EQ(tally.first->what, "not finite");
  EXPECT_EQ(tally.first->expected, 4);
  EXPECT_TRUE(std::isnan(tally.first->got));
}

TEST(CompareSequence, FiniteWhereTheGoldenIsNotIsAFinding) {
  Record record = small();
  record.values[1] = kNaN;
  record.norm[0] = kNaN;
  const Bounds bounds = bounds_of(record, kQuartile);
  const auto judge = [&](const HostTensor& got) { return compare_sequence(record, bounds, got, kRow, kColumn, 0, 3); };
  EXPECT_EQ(judge(right()).first->what, "not finite");
  EXPECT_FALSE(judge(with(0, 4, kNaN)).first);
  EXPECT_EQ(judge(with(0, 4, kInf)).first->what, "not finite");
  // What is finite in that row is still judged.
  HostTensor got = with(0, 4, kNaN);
  got.values<float>()[flat(0, 1)] = 4;
  EXPECT_EQ(judge(got).first->what, "value");
}

TEST(CompareSequence, ShiftByOnePositionFails) {
  // The subject's columns 2 and 3 (positions 1 and 2) offered as positions 0 and 1.
  const Record record = small();
  const Tally tally = compare_sequence(record, bounds_of(record, kQuartile), right(), kRow, kColumn + 1, 0, 2);
  ASSERT_TRUE(tally.first);
  EXPECT_EQ(tally.first->position, 0);
  EXPECT_EQ(tally.first->expected, 3);
  EXPECT_EQ(tally.first->got, 0);
}

TEST(CompareSequence, PartOfTheRecordIsJudgedByItsOwnPositions) {
  EXPECT_FALSE(compare(with(0, 1, 100), 1, 2).first);
  const Tally tally = compare(with(2, 1, 5), 1, 2);
  ASSERT_TRUE(tally.first);
  EXPECT_EQ(tally.first->position, 2);
  EXPECT_EQ(tally.first->bound, 0.25);
  EXPECT_EQ(tally.elements, 4);
}

TEST(CompareSequence, WholeRowsAreComparedWithoutASample) {
  Record record = small();
  record.sample = {};
  record.values = {0, 3, 0, 0, 4, 0, 0, 0, 2, 0, 0, 0, 0, 6, 0, 0, 8, 0};
  const Tally tally = compare_sequence(record, bounds_of(record, kQuartile), with(0, 5, 12), kRow, kColumn, 0, 3);
  EXPECT_EQ(tally.elements, 18);
  ASSERT_TRUE(tally.first);
  EXPECT_EQ(tally.first->what, "value");
  EXPECT_EQ(tally.first->index, (std::vector<int64_t>{1, 2}));
}

TEST(CompareSequence, WrongShapeOrDtypeIsAFindingOfTheSubject) {
  const std::vector<float> zeros(48);
  for (const HostTensor& got :
       {HostTensor({2, 4, 3, 2}, zeros), HostTensor({2, 4, 6}, zeros), HostTensor({4, 2, 2, 3}, zeros),
        HostTensor({1, 8, 2, 3}, zeros), HostTensor(), HostTensor(DType::kF64, {2, 4, 2, 3})}) {
    const Tally tally = compare(got);
    ASSERT_TRUE(tally.first) << to_string(got.shape());
    EXPECT_EQ(tally.first->what, "shape");
    EXPECT_NE(tally.first->detail.find(to_string(got.shape())), std::string::npos) << tally.first->detail;
    EXPECT_EQ(tally.used, kInf);
  }
}

TEST(CompareSequence, MissingColumnsOrRowsAreAFindingOfTheSubject) {
  const Record record = small();
  const Bounds bounds = bounds_of(record, kQuartile);
  EXPECT_EQ(compare_sequence(record, bounds, right(), kRow, 2, 0, 3).first->what, "shape");
  EXPECT_EQ(compare_sequence(record, bounds, right(), 2, kColumn, 0, 3).first->what, "shape");
  EXPECT_EQ(compare_sequence(record, bounds, right(), 2, kColumn, 0, 3).first->layer, 2);
}

TEST(CompareSequence, PositionsBeyondTheRecordAreTheCallersError) {
  const Record record = small();
  const Bounds bounds = bounds_of(record, kQuartile);
  EXPECT_THROW(compare_sequence(record, bounds, right(), kRow, 0, 0, 4), InputError);
  EXPECT_THROW(compare_sequence(record, bounds, right(), kRow, 0, 2, 2), InputError);
  EXPECT_THROW(compare_sequence(record, bounds, right(), kRow, 0, -1, 2), InputError);
  EXPECT_THROW(compare_sequence(record, bounds, right(), -1, 0, 0, 2), InputError);
  Bounds other = bounds;
  other.element.pop_back();
  EXPECT_THROW(compare_sequence(record, other, right(), kRow, kColumn, 0, 3), InputError);
}

TEST(CompareSequence, FactorZeroAllowsOnlyEquality) {
  const Record record = small();
  const Bounds bounds = bounds_of(record, {.factor = 0, .few = 0});
  EXPECT_FALSE(compare_sequence(record, bounds, right(), kRow, kColumn, 0, 3).first);
  const Tally tally = compare_sequence(record, bounds, with(0, 1, std::nextafter(3.f, 4.f)), kRow, kColumn, 0, 3);
  ASSERT_TRUE(tally.first);
  EXPECT_EQ(tally.used, kInf);
}

HostTensor tensor(Shape shape, const std::vector<float>& values) { return HostTensor(std::move(shape), values); }

// Two heads of [2]: 3 4 (floor 1/64), 0 1 (floor 1); the state of batch row 1 of 2. The medians lie between the heads.
Record heads() {
  return {.name = "layers.0.mixer.ssm_state",
          .shape = {2},
          .positions = 2,
          .values = {3, 4, 0, 1},
          .norm = {5, 1},
          .floor = {0, 1},
          .norm_floor = {0, 1},
          .scale = 4};
}

TEST(CompareState, EachHeadHasItsOwnBoundAndLeadsTheCoordinates) {
  const Record record = heads();
  const Bounds bounds = bounds_of(record, {.factor = 1, .few = 0});
  EXPECT_EQ(bounds.element, (std::vector<double>{0.5, 1}));
  EXPECT_FALSE(compare_state(record, bounds, tensor({2, 2, 2}, {9, 9, 9, 9, 3, 4, 0, 1}), 1).first);
  EXPECT_FALSE(compare_state(record, bounds, tensor({2, 2, 2}, {9, 9, 9, 9, 3, 4, 0, 2}), 1).first);
  const Tally tally = compare_state(record, bounds, tensor({2, 2, 2}, {9, 9, 9, 9, 3, 4, 0, 2.5}), 1);
  ASSERT_TRUE(tally.first);
  EXPECT_EQ(tally.first->index, (std::vector<int64_t>{1, 1}));
  EXPECT_EQ(tally.first->position, -1);
  EXPECT_EQ(tally.first->layer, 0);
  // The same difference in the other head is out of its bound.
  EXPECT_EQ(compare_state(record, bounds, tensor({1, 2, 2}, {3, 5, 0, 1}), 0).first->index,
            (std::vector<int64_t>{0, 1}));
}

TEST(CompareState, HeadsSwappedFail) {
  const Record record = heads();
  EXPECT_TRUE(
      compare_state(record, bounds_of(record, {.factor = 1, .few = 0}), tensor({1, 2, 2}, {0, 1, 3, 4}), 0).first);
}

TEST(CompareState, NormOfAHeadNamesTheHead) {
  Record record = heads();
  record.sample = {0};
  record.values = {3, 0};
  const Tally tally =
      compare_state(record, bounds_of(record, {.factor = 1, .few = 0}), tensor({1, 2, 2}, {3, 4, 0, 8}), 0);
  ASSERT_TRUE(tally.first);
  EXPECT_EQ(tally.first->what, "norm");
  EXPECT_EQ(tally.first->detail, "head 1");
}

TEST(CompareState, WithoutHeadsTheRowIsTheState) {
  const Record record{.name = "layers.1.mixer.conv_state",
                      .shape = {2, 2},
                      .positions = 1,
                      .values = {0, 3, 0, 4},
                      .norm = {5},
                      .floor = {0.125},
                      .norm_floor = {0.125},
                      .scale = 4};
  const Bounds bounds = bounds_of(record, {.factor = 1, .few = 0});
  EXPECT_FALSE(compare_state(record, bounds, tensor({1, 2, 2}, {0, 3, 0, 4}), 0).first);
  EXPECT_EQ(compare_state(record, bounds, tensor({1, 2, 2}, {3, 0, 0, 4}), 0).first->index,
            (std::vector<int64_t>{0, 0}));
  EXPECT_EQ(compare_state(record, bounds, tensor({1, 4}, {0, 3, 0, 4}), 0).first->what, "shape");
  EXPECT_EQ(compare_state(record, bounds, tensor({1, 2, 2}, {0, 3, 0, 4}), 1).first->what, "shape");
  EXPECT_THROW(compare_state(record, bounds, tensor({1, 2, 2}, {0, 3, 0, 4}), -1), InputError);
}

TEST(CompareLegs, EveryElementCounts) {
  const Record record = small();
  const Bounds bounds = bounds_of(record, kQuartile);
  // The other leg holds the same positions as batch row 0, from column 0.
  std::vector<float> values;
  for (int64_t p = 0; p < 3; ++p)
    for (int64_t i = 0; i < 6; ++i) values.push_back(right().values<float>()[flat(p, i)]);
  const HostTensor other({1, 3, 2, 3}, values);
  const auto judge = [&](const HostTensor& got) {
    return compare_legs(record, bounds, other, 0, 0, got, kRow, kColumn, 0, 3);
  };
  EXPECT_FALSE(judge(right()).first);
  EXPECT_EQ(judge(right()).elements, 18);
  EXPECT_FALSE(judge(with(0, 5, 0.125f)).first);
  // The norm would not show it: 5 against 5.0125.
  const Tally tally = judge(with(0, 5, 0.25f + 0.125f));
  ASSERT_TRUE(tally.first);
  EXPECT_EQ(tally.first->what, "value");
  EXPECT_EQ(tally.first->index, (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(tally.used, 3);
  EXPECT_EQ(judge(with(1, 0, kNaN)).first->what, "not finite");
  // The golden has judged a NaN that both legs share.
  EXPECT_FALSE(
      compare_legs(record, bounds, with(1, 0, kNaN), kRow, kColumn, with(1, 0, kNaN), kRow, kColumn, 0, 3).first);
  EXPECT_EQ(compare_legs(record, bounds, HostTensor({1, 3, 6}, values), 0, 0, right(), kRow, kColumn, 0, 3).first->what,
            "shape");
  EXPECT_THROW(compare_legs(record, bounds, other, 0, 0, right(), kRow, kColumn, 1, 3), InputError);
  // The bound is that of the position: 1/4 at position 2.
  EXPECT_FALSE(compare_legs(record, bounds, other, 0, 2, with(2, 5, 0.25f), kRow, kColumn + 2, 2, 1).first);
}

TEST(CompareLegs, StatesHeadByHead) {
  const Record record = heads();
  const Bounds bounds = bounds_of(record, {.factor = 1, .few = 0});
  const HostTensor other({1, 2, 2}, std::vector<float>{1, 2, 3, 4});
  EXPECT_FALSE(compare_leg_states(record, bounds, other, 0, tensor({1, 2, 2}, {1, 2.5, 3, 5}), 0).first);
  const Tally tally = compare_leg_states(record, bounds, other, 0, tensor({1, 2, 2}, {1, 2.75, 3, 5.5}), 0);
  ASSERT_TRUE(tally.first);
  EXPECT_EQ(tally.first->index, (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(tally.first->bad, 2);
  EXPECT_EQ(tally.first->of, 4);
}

// Two heads of two, two positions, elements 0 and 3 of a column kept: 1 2 / 3 4, then 5 6 / 7 8. Bounds 1/8.
Record columns() {
  return {.name = "layers.1.attn.k_cache",
          .shape = {2, 2},
          .positions = 2,
          .sample = {0, 3},
          .values = {1, 4, 5, 8},
          .norm = {std::sqrt(30.f), std::sqrt(174.f)},
          .floor = {1 / 64.f, 1 / 64.f},
          .norm_floor = {1 / 64.f, 1 / 64.f},
          .scale = 8};
}
// [B = 2, heads 2, T = 3, width 2]: row 1 after one column of padding; nobody may look at the NaN.
HostTensor cache(float third_of_last = 7) {
  std::vector<float> values(12, kNaN);
  values.insert(values.end(), {kNaN, kNaN, 1, 2, 5, 6, kNaN, kNaN, 3, 4, third_of_last, 8});
  return HostTensor({2, 2, 3, 2}, values);
}

TEST(CompareGrowing, EachColumnByItsPosition) {
  const Record record = columns();
  const Bounds bounds = bounds_of(record, kQuartile);
  const HostTensor right = cache(), wrong = cache(7.5f);
  const Tally tally = compare_growing(record, bounds, {right, 1, 1, 3}, 2);
  EXPECT_FALSE(tally.first);
  EXPECT_EQ(tally.elements, 4);
  // Outside the sample: the column's norm sees it.
  const Tally norm = compare_growing(record, bounds, {wrong, 1, 1, 3}, 2);
  ASSERT_TRUE(norm.first);
  EXPECT_EQ(norm.first->what, "norm");
  EXPECT_EQ(norm.first->position, 1);
  EXPECT_FALSE(compare_growing(record, bounds, {wrong, 1, 1, 3}, 1).first);
  // One column further left, the padding is compared: not finite.
  EXPECT_TRUE(compare_growing(record, bounds, {right, 1, 0, 3}, 2).first);
}

TEST(CompareGrowing, ShapesAreFindings) {
  const Record record = columns();
  const Bounds bounds = bounds_of(record, kQuartile);
  const HostTensor right = cache();
  EXPECT_EQ(compare_growing(record, bounds, {right, 1, 1, 4}, 2).first->what, "shape");
  EXPECT_EQ(compare_growing(record, bounds, {right, 2, 1, 3}, 2).first->what, "shape");
  const HostTensor folded({2, 3, 4}, std::vector<float>(24));
  const Tally tally = compare_growing(record, bounds, {folded, 1, 1, 3}, 2);
  EXPECT_EQ(tally.first->what, "shape");
  EXPECT_NE(tally.first->detail.find("[B > 1, 2, 3, 2]"), std::string::npos) << tally.first->detail;
}

TEST(CompareGrowing, LegsOnEveryElementWhateverTheirPadding) {
  const Record record = columns();
  const Bounds bounds = bounds_of(record, kQuartile);
  const HostTensor alone({1, 2, 2, 2}, std::vector<float>{1, 2, 5, 6, 3, 4, 7, 8}), right = cache(),
                                                                                    wrong = cache(7.5f);
  EXPECT_FALSE(compare_leg_growing(record, bounds, {alone, 0, 0, 2}, {right, 1, 1, 3}, 2).first);
  const Tally tally = compare_leg_growing(record, bounds, {alone, 0, 0, 2}, {wrong, 1, 1, 3}, 2);
  ASSERT_TRUE(tally.first);
  EXPECT_EQ(tally.first->what, "value");
  EXPECT_EQ(tally.first->position, 1);
  EXPECT_EQ(tally.first->index, (std::vector<int64_t>{1, 0}));
}

TEST(TallyMerge, KeepsTheEarlierFindingAndTheLargerShare) {
  Tally sum = compare(with(1, 1, 0.0625f));
  EXPECT_EQ(sum.used, 0.5);
  Tally bad = compare(with(0, 1, 4));
  bad.used_by = "second";
  sum.merge(bad);
  Tally third = compare(with(1, 4, 0.5f));
  third.used_by = "third";
  sum.merge(third);
  EXPECT_EQ(sum.probes, 3);
  EXPECT_EQ(sum.elements, 18);
  EXPECT_EQ(sum.first->position, 0);
  EXPECT_EQ(sum.used, 8);
  EXPECT_EQ(sum.used_by, "second");
}

}  // namespace
}  // namespace assay::golden
