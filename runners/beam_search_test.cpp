#include "runners/beam_search.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <cmath>

#include "cases/spec/error.hpp"
#include "runners/execute.hpp"
#include "runners/testing/fixture.hpp"

namespace assay {
namespace {

TEST(ChooseBeams, TakesTheLargestSumsAndTheLowerIndexOfATie) {
  // Beam 0 has the sum -1, beam 1 -2; three tokens each.
  const BeamChoice choice = choose_beams({-1, -2}, {{-3, -1, -2}, {-0.5, -1, -4}}, 2);
  EXPECT_EQ(choice.step.sources, (std::vector<int64_t>{0, 1}));  // -2, -2.5; -3 twice: token 2 of beam 0 is first
  EXPECT_EQ(choice.step.tokens, (std::vector<int64_t>{1, 0}));
  EXPECT_EQ(choice.step.log_probs, (std::vector<float>{-2, -2.5, -3}));
  EXPECT_EQ(choice.sums, (std::vector<double>{-2, -2.5}));
  const BeamChoice tied = choose_beams({0}, {{-1, -1, -1}}, 2);
  EXPECT_EQ(tied.step.tokens, (std::vector<int64_t>{0, 1}));
  EXPECT_THROW(choose_beams({0}, {{-1, -2}}, 2), InputError);
}

TEST(ChooseBeams, NotANumberIsChosenLast) {
  const BeamChoice choice = choose_beams({0}, {{std::nan(""), -1, -2, -3}}, 2);
  EXPECT_EQ(choice.step.tokens, (std::vector<int64_t>{1, 2}));
}

TEST(LogSoftmax, OfOneRowAndColumn) {
  const HostTensor logits({1, 2, 2}, std::vector<float>{9, 9, 0, std::log(3.0F)});
  EXPECT_NEAR(log_softmax(logits, 0, 1)[0], std::log(0.25), 1e-7);
  EXPECT_NEAR(log_softmax(logits, 0, 1)[1], std::log(0.75), 1e-7);
}

TEST(SumOfLast, SkipsThePadding) {
  RowPlan row;
  row.pad = 1;
  row.tokens = {0, 1};
  const float three = std::log(3.0F);
  const HostTensor logits({1, 3, 2}, std::vector<float>{5, 5, 0, three, 5, 5});
  EXPECT_NEAR(sum_of_last(logits, row, 0, 1), std::log(0.75), 1e-7);
}

// The golden's search is the fixture's own, which runs every sequence whole.
class Beams : public ::testing::Test {
 protected:
  Beams() {
    unsetenv("ASSAY_TINY_FAULT");
    for (const char* input : {"beams", "beams_late"})
      goldens.put(testing::recorded(testing::tiny_subject(), config, input));
  }
  ~Beams() override { unsetenv("ASSAY_TINY_FAULT"); }

  Verdict run(const std::string& legs, const char* fault = "") {
    setenv("ASSAY_TINY_FAULT", fault, 1);
    Execution execution(testing::tiny_subject(), goldens);
    const Verdict verdict = execution.run(testing::small_case(legs), config);
    unsetenv("ASSAY_TINY_FAULT");
    return verdict;
  }
  static std::string leg(const std::string& rows, const std::string& cache, const std::string& beams) {
    return R"([{"name": "search", "rows": )" + rows + R"(, "cache": ")" + cache + R"(", "beams": )" + beams + "}]";
  }

  ModelConfig config = testing::small_config();
  GoldenStore goldens{"nowhere"};
  const std::string two = R"({"width": 2, "steps": 4})", all = R"({"width": "exhaustive", "steps": 2})";
  const std::string alone = R"([{"input": "beams"}])";
  const std::string together = R"([{"input": "beams", "pad": 1}, {"input": "beams_late", "pad": 2}])";
};

TEST_F(Beams, AnHonestSubjectPassesWithAndWithoutACache) {
  for (const char* cache : {"none", "dynamic"})
    for (const std::string& rows : {alone, together}) {
      const Verdict v = run(leg(rows, cache, two));
      EXPECT_EQ(v.status, Status::kPass) << cache << rows << v.reason;
      ASSERT_FALSE(v.notes.empty());
      EXPECT_NE(v.notes[0].find("4 of 4 steps"), std::string::npos) << v.notes[0];
    }
}

TEST_F(Beams, RowsThatAreNotReorderedFail) {
  const Verdict v = run(leg(together, "dynamic", two), "unordered");
  EXPECT_EQ(v.status, Status::kFail);
  EXPECT_EQ(run(leg(together, "none", two), "unordered").status, Status::kPass);
}

TEST_F(Beams, OneStateThatIsNotReorderedFails) {
  const Verdict v = run(leg(together, "dynamic", two), "half_ordered");
  EXPECT_EQ(v.status, Status::kFail);
  ASSERT_TRUE(v.first);
}

TEST_F(Beams, ASequenceThatTheGoldenDoesNotHaveIsAFinding) {
  golden::Golden other = testing::recorded(testing::tiny_subject(), config, "beams");
  other.beams->steps[3].tokens[1] = (other.beams->steps[3].tokens[1] + 1) % 24;
  goldens.put(other);
  const Verdict v = run(leg(alone, "dynamic", two));
  EXPECT_EQ(v.status, Status::kFail);
  ASSERT_TRUE(v.first);
  EXPECT_EQ(v.first->probe, "beams");
  EXPECT_EQ(v.first->position, 6);
}

TEST_F(Beams, ANearTieFromTheStartIsHollow) {
  golden::Golden tied = testing::recorded(testing::tiny_subject(), config, "beams");
  tied.beams->steps[0].log_probs[2] = tied.beams->steps[0].log_probs[1];
  goldens.put(tied);
  const Verdict v = run(leg(alone, "dynamic", two));
  EXPECT_EQ(v.status, Status::kHollow);
  EXPECT_NE(v.reason.find("0 of 4 steps"), std::string::npos) << v.reason;
}

TEST_F(Beams, EveryTokenOfTheVocabulary) {
  const Verdict v = run(leg(alone, "dynamic", all));
  EXPECT_EQ(v.status, Status::kPass) << v.reason;
  ASSERT_GE(v.notes.size(), 2u);
  EXPECT_NE(v.notes[1].find("of 576 sequences"), std::string::npos) << v.notes[1];
  for (const char* fault : {"unordered", "half_ordered"})
    EXPECT_EQ(run(leg(alone, "dynamic", all), fault).status, Status::kFail) << fault;
}

TEST_F(Beams, ASubjectThatCannotReorderIsSkipped) {
  Capabilities capabilities = testing::tiny_subject().capabilities();
  check_capabilities(testing::small_case(leg(alone, "dynamic", two)), capabilities);
  capabilities.can_reorder = false;
  try {
    check_capabilities(testing::small_case(leg(alone, "dynamic", two)), capabilities);
    ADD_FAILURE() << "was not skipped";
  } catch (const NoVerdict& end) {
    EXPECT_EQ(end.skip, SkipReason::kNoCapability);
  }
  check_capabilities(testing::small_case(leg(alone, "none", two)), capabilities);
}

}  // namespace
}  // namespace assay
