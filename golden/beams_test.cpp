#include "golden/beams.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "cases/spec/error.hpp"

namespace assay::golden {
namespace {

// Two beams, two steps: 5 and 7 after the prompt, then 5 9 before 7 4.
BeamRecord sound() {
  BeamRecord record;
  record.sequences = {{5, 9}, {7, 4}};
  record.scores = {-1, -1.25};
  record.floor = 1e-6f;
  record.steps = {{{0, 0}, {7, 5}, {-0.5, -0.75, -1.5}, 1e-6f}, {{1, 0}, {9, 4}, {-2, -2.5, -3}, 2e-6f}};
  return record;
}

const std::vector<double> kBounds{1e-4, 2e-4};

TEST(Beams, StepsLeadToTheSequences) {
  EXPECT_EQ(sequences_of(sound().steps), sound().sequences);
  EXPECT_EQ(beam_problem(sound()), "");
}

TEST(Beams, PartsThatDoNotFitAreNamed) {
  BeamRecord record = sound();
  record.sequences[0] = {7, 9};
  EXPECT_NE(beam_problem(record).find("sequences"), std::string::npos);
  record = sound();
  record.scores[1] = -2.5;  // the sum, not divided by the number of tokens
  EXPECT_NE(beam_problem(record).find("score 1"), std::string::npos);
  record = sound();
  record.steps[1].sources[0] = 2;
  EXPECT_NE(beam_problem(record).find("beam 2 of 2"), std::string::npos);
  record = sound();
  record.steps[0].log_probs.pop_back();
  EXPECT_NE(beam_problem(record).find("dropped candidate"), std::string::npos);
  record = sound();
  std::swap(record.steps[0].log_probs[0], record.steps[0].log_probs[1]);
  EXPECT_NE(beam_problem(record).find("descend"), std::string::npos);
}

TEST(Beams, BoundsGrowWithTheTokensSummed) {
  EXPECT_EQ(beam_bounds(sound(), Rule{.factor = 8}, 1e-5), (std::vector<double>{2e-5, 4e-5}));
  const std::vector<double> floors = beam_bounds(sound(), Rule{.factor = 8}, 1e-9);
  EXPECT_NEAR(floors[0], 8e-6, 1e-12);
  EXPECT_NEAR(floors[1], 16e-6, 1e-12);
}

TEST(JudgeBeams, TheOrderOfKeptBeamsDoesNotMatter) {
  std::vector<BeamStep> got = sound().steps;
  got[0] = {{0, 0}, {5, 7}, {-0.75, -0.5, -1.5}};
  got[1].sources = {0, 1};
  const BeamJudgement judgement = judge_beams(sound(), got, kBounds, 5);
  EXPECT_FALSE(judgement.tally.first);
  EXPECT_EQ(judgement.judged, 2);
  EXPECT_EQ(judgement.hollow, "");
}

TEST(JudgeBeams, AnotherBeamAndAnotherSumAreFound) {
  std::vector<BeamStep> got = sound().steps;
  got[1].tokens[1] = 3;
  BeamJudgement judgement = judge_beams(sound(), got, kBounds, 5);
  ASSERT_TRUE(judgement.tally.first);
  EXPECT_EQ(judgement.tally.first->what, "token");
  EXPECT_EQ(judgement.tally.first->position, 6);
  EXPECT_NE(judgement.tally.first->detail.find("7 4"), std::string::npos);
  EXPECT_NE(judgement.tally.first->detail.find("7 3"), std::string::npos);
  got = sound().steps;
  got[0].log_probs[1] += 3e-4f;
  judgement = judge_beams(sound(), got, kBounds, 5);
  ASSERT_TRUE(judgement.tally.first);
  EXPECT_EQ(judgement.tally.first->what, "value");
  EXPECT_EQ(judgement.tally.first->position, 5);
  got = sound().steps;
  got[0].log_probs[0] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(judge_beams(sound(), got, kBounds, 5).tally.first);
}

TEST(JudgeBeams, StopsBeforeANearTieAndSaysWhenThatIsTooEarly) {
  BeamRecord record = sound();
  record.steps[1].log_probs = {-2, -2.5, -2.5003f};
  std::vector<BeamStep> got = record.steps;
  got[1].tokens[1] = 3;
  BeamJudgement judgement = judge_beams(record, got, kBounds, 5);
  EXPECT_FALSE(judgement.tally.first);
  EXPECT_EQ(judgement.near_tie, 1);
  EXPECT_EQ(judgement.judged, 1);
  EXPECT_EQ(judgement.hollow, "");
  record.steps[0].log_probs = {-0.5, -0.75, -0.7501f};
  judgement = judge_beams(record, got, kBounds, 5);
  EXPECT_EQ(judgement.judged, 0);
  EXPECT_NE(judgement.hollow, "");
}

TEST(ComposeBeams, TakesFloorsAndRefusesPrecisionsThatChooseDifferently) {
  const nlohmann::json narrow = {
      {"sequences", {{5}, {7}}},
      {"scores", {-0.5, -0.75}},
      {"steps", {{{"sources", {0, 0}}, {"tokens", {5, 7}}, {"log_probs", {-0.5, -0.75, -1.5}}}}}};
  nlohmann::json wide = narrow;
  wide["steps"][0]["log_probs"] = {-0.5, -0.75000119, -1.5};
  const BeamRecord record = compose_beams("m/c.i.f32", {{"f32", narrow}, {"f64", wide}});
  EXPECT_EQ(record.steps.at(0).floor, 1.2e-6f);
  wide["steps"][0]["tokens"] = {5, 6};
  EXPECT_THROW(compose_beams("m/c.i.f32", {{"f32", narrow}, {"f64", wide}}), HarnessError);
}

}  // namespace
}  // namespace assay::golden
