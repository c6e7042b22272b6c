#include "runners/execute.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "runners/hollow.hpp"
#include "runners/testing/fixture.hpp"

namespace assay {
namespace {

constexpr const char* kWhole = R"([{"name": "whole", "rows": [{"input": "a"}]}])";

// Goldens that the honest subject recorded; each test plants a fault and asks what the verdict says of it.
class Executing : public ::testing::Test {
 protected:
  Executing() {
    unsetenv("ASSAY_TINY_FAULT");
    for (const char* input : {"a", "b", "greedy"}) record(input);
  }
  ~Executing() override { unsetenv("ASSAY_TINY_FAULT"); }

  void record(const std::string& input) { goldens.put(testing::recorded(testing::tiny_subject(), config, input)); }

  Verdict run(const std::string& legs, const std::string& agree = "[]", const char* fault = "") {
    setenv("ASSAY_TINY_FAULT", fault, 1);
    Execution execution(testing::tiny_subject(), goldens);
    const Verdict verdict = execution.run(testing::small_case(legs, agree), config, &evidence);
    unsetenv("ASSAY_TINY_FAULT");
    return verdict;
  }

  ModelConfig config = testing::small_config();
  GoldenStore goldens{"nowhere"};
  Evidence evidence;
};

TEST_F(Executing, AnHonestSubjectPasses) {
  const Verdict v = run(kWhole);
  EXPECT_EQ(v.status, Status::kPass) << v.reason;
  EXPECT_EQ(v.probes, 21);  // embed, 9 in each of 2 layers, norm_f, logits
  EXPECT_LT(v.used, 0.05);  // the goldens are its own numbers; only norms are summed in another order
  EXPECT_FALSE(v.golden_digests.empty());
  EXPECT_EQ(v.outputs.size(), 16u);
}

TEST_F(Executing, TheFirstWrongProbeIsNamed) {
  const Verdict v = run(kWhole, "[]", "skip");
  EXPECT_EQ(v.status, Status::kFail);
  ASSERT_TRUE(v.first);
  EXPECT_EQ(v.first->probe, "layers.0.mixer.scan");
  EXPECT_EQ(v.first->layer, 0);
  EXPECT_EQ(v.first->step, 0);
  EXPECT_EQ(v.first->position, 0);
  EXPECT_EQ(v.leg, "whole");
  EXPECT_GT(v.used, 1);
  EXPECT_GT(v.first->bad, 0);
  // What --dump writes: the wrong tensor, what was expected, and the tensor before it.
  std::vector<std::string> names;
  for (const NamedTensor& tensor : evidence.tensors) names.push_back(tensor.name);
  for (const char* name :
       {"got/layers.0.mixer.scan", "got_before/layers.0.mixer.dt", "expected/layers.0.mixer.scan", "tokens"})
    EXPECT_EQ(std::count(names.begin(), names.end(), name), 1) << name;
}

TEST_F(Executing, RowStepAndPositionOfAPaddedCachedBatch) {
  const std::string legs = R"([{"name": "ragged", "cache": "dynamic", "calls": [5, "each"],
                                "rows": [{"input": "a", "length": 9}, {"input": "b", "length": 6, "pad": 3}]}])";
  EXPECT_EQ(run(legs).status, Status::kPass);
  const Verdict v = run(legs, "[]", "nan@2");
  EXPECT_EQ(v.status, Status::kFail);
  ASSERT_TRUE(v.first);
  EXPECT_EQ(v.first->probe, "layers.1.out");
  EXPECT_EQ(v.first->what, "not finite");
}

TEST_F(Executing, AStateThatAResetKeepsIsFound) {
  const std::string legs = R"([{"name": "second", "cache": "dynamic", "rows": [{"input": "a"}],
                                "before": {"input": "b", "session": "same"}}])";
  EXPECT_EQ(run(legs).status, Status::kPass);
  const Verdict v = run(legs, "[]", "stale");
  EXPECT_EQ(v.status, Status::kFail);
  ASSERT_TRUE(v.first);
  EXPECT_EQ(v.first->probe, "layers.0.mixer.scan");
}

TEST_F(Executing, AMissingProbeAndAWrongShapeFail) {
  Verdict v = run(kWhole, "[]", "missing");
  EXPECT_EQ(v.status, Status::kFail);
  ASSERT_TRUE(v.first);
  EXPECT_EQ(v.first->probe, "norm_f");
  EXPECT_EQ(v.first->what, "missing");
  v = run(kWhole, "[]", "shape");
  EXPECT_EQ(v.status, Status::kFail);
  ASSERT_TRUE(v.first);
  EXPECT_EQ(v.first->probe, "logits");
  EXPECT_EQ(v.first->what, "shape");
}

TEST_F(Executing, WhatTheSubjectThrowsBecomesAStatus) {
  const Verdict error = run(kWhole, "[]", "throw");
  EXPECT_EQ(error.status, Status::kError);
  EXPECT_NE(error.reason.find("was told to throw"), std::string::npos);
  EXPECT_EQ(run(kWhole, "[]", "oom").status, Status::kOom);
}

TEST_F(Executing, NoGoldenIsNeverAPass) {
  EXPECT_EQ(run(R"([{"name": "whole", "rows": [{"input": "one"}]}])").status, Status::kNoGolden);
}

TEST_F(Executing, AStaleGoldenIsNotCompared) {
  golden::Golden other = testing::recorded(testing::tiny_subject(), config, "a");
  other.config_digest = std::string(64, '0');
  goldens.put(other);
  const Verdict v = run(kWhole);
  EXPECT_EQ(v.status, Status::kStale);
  EXPECT_EQ(v.elements, 0);
}

TEST_F(Executing, WhatTheSubjectLacksIsSkippedWithItsReason) {
  Verdict v = run(R"([{"name": "s", "rows": [{"input": "a"}], "cache": "static"}])");
  EXPECT_EQ(v.status, Status::kSkip);
  EXPECT_EQ(v.skip, SkipReason::kNoCapability);
  v = run(R"([{"name": "f", "rows": [{"input": "a"}], "forms": {"selective_scan": "recurrent"}}])");
  EXPECT_EQ(v.status, Status::kSkip);
  EXPECT_EQ(v.skip, SkipReason::kNoForm);
}

TEST_F(Executing, FreeRunningTokensAreJudged) {
  for (const char* cache : {"none", "dynamic"}) {
    const std::string legs =
        std::string(R"([{"name": "free", "rows": [{"input": "greedy"}], "free_running": true, "cache": ")") + cache +
        "\"}]";
    const Verdict v = run(legs);
    EXPECT_EQ(v.status, Status::kPass) << cache << ": " << v.reason;
    ASSERT_FALSE(v.notes.empty());
    EXPECT_NE(v.notes[0].find("12 greedy tokens judged"), std::string::npos) << v.notes[0];
  }
}

TEST_F(Executing, RowsWhoseGoldensHoldOtherProbesAreJudgedByWhatEachHolds) {
  record("logits");
  const std::string legs = R"([{"name": "mixed", "cache": "dynamic", "rows": [{"input": "logits"}, {"input": "a"}]},
                               {"name": "alone", "cache": "dynamic", "rows": [{"input": "logits"}]},
                               {"name": "steps", "cache": "dynamic", "calls": [4, "each"], "rows": [{"input": "logits"}]}])";
  const Verdict v = run(legs, R"([["alone", "mixed"], ["alone", "steps"]])");
  EXPECT_EQ(v.status, Status::kPass) << v.reason;
  // A row of its own golden's probes alone: the NaN of layer 1 is seen in the row that has the probe.
  const Verdict mixed = run(legs, "[]", "nan@2");
  ASSERT_TRUE(mixed.first);
  EXPECT_EQ(mixed.first->probe, "layers.1.out");
  EXPECT_EQ(mixed.first->row, 1);
  const Verdict alone = run(legs, "[]", "nan@1");
  ASSERT_TRUE(alone.first);
  EXPECT_EQ(alone.first->probe, "logits");
  EXPECT_EQ(alone.leg, "alone");
}

TEST_F(Executing, AgreeingLegsAreComparedOnEveryElement) {
  // A golden that samples one element of the scan, and whose scan is right there: the other elements are the legs' to
  // judge.
  golden::Golden sampled = testing::recorded(testing::tiny_subject(), config, "a");
  for (golden::Record& record : sampled.probes) {
    if (record.name == "embed") continue;
    const auto width = static_cast<size_t>(record.columns());
    std::vector<float> kept;
    for (size_t p = 0; p < static_cast<size_t>(record.positions); ++p) kept.push_back(record.values[p * width]);
    record.values = kept;
    record.sample = {0};
    std::fill(record.floor.begin(), record.floor.end(), 1e-3F);
    std::fill(record.norm_floor.begin(), record.norm_floor.end(), 1e3F);
  }
  goldens.put(sampled);
  const std::string legs = R"([{"name": "alone", "rows": [{"input": "a"}]},
                               {"name": "twice", "rows": [{"input": "a"}, {"input": "a"}]}])";
  EXPECT_EQ(run(legs, R"([["alone", "twice"]])").status, Status::kPass);
  const Verdict v = run(legs, R"([["alone", "twice"]])", "skip@2");
  EXPECT_EQ(v.status, Status::kFail);
  ASSERT_TRUE(v.first);
  EXPECT_EQ(v.first->probe, "layers.0.mixer.scan");
}

TEST_F(Executing, AChangedTokenMustMoveTheLogits) {
  const std::string legs = R"([{"name": "late", "rows": [{"input": "a", "change": {"position": 5, "token": 8}}]}])";
  const Verdict v = run(legs);
  EXPECT_EQ(v.status, Status::kPass) << v.reason;
  // Goldens of a subject that reads every token as 0: it matches them, and still proves nothing.
  setenv("ASSAY_TINY_FAULT", "deaf", 1);
  record("a");
  const Verdict deaf = run(legs, "[]", "deaf");
  EXPECT_EQ(deaf.status, Status::kHollow);
  EXPECT_NE(deaf.reason.find("moved no logit"), std::string::npos) << deaf.reason;
}

TEST_F(Executing, OutputsThatDoNotFollowTheInputAreHollow) {
  setenv("ASSAY_TINY_FAULT", "deaf", 1);
  record("a");
  EXPECT_EQ(run(kWhole, "[]", "deaf").status, Status::kHollow);
}

TEST(Hollow, ZerosAndConstantsProveNothing) {
  const auto trace = [](const std::vector<float>& values) {
    Trace result;
    result.probes.push_back({"embed", HostTensor({1, 2, 2}, values)});
    return result;
  };
  EXPECT_EQ(hollow_reason(trace({1, 2, 3, 4}), trace({1, 2, 3, 5})), "");
  EXPECT_NE(hollow_reason(trace({1, 2, 3, 4}), trace({1, 2, 3, 4})), "") << "the same for another input";
  EXPECT_NE(hollow_reason(trace({0, 0, 0, 0}), trace({1, 2, 3, 4})), "");
  EXPECT_NE(hollow_reason(trace({0, 0, 0, 4}), trace({1, 2, 3, 5})), "") << "mostly zeros";
  EXPECT_NE(hollow_reason(Trace(), Trace()), "") << "nothing at all";
}

}  // namespace
}  // namespace assay
