#include "runners/judge.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace assay {
namespace {

// A session that has nothing but a key cache of one head of two: [1, 1, T, 2].
class CacheSession : public Session {
 public:
  explicit CacheSession(std::vector<NamedTensor> states) : states_(std::move(states)) {}
  Trace forward(const Call&) override { return {}; }
  std::vector<NamedTensor> states() const override { return states_; }
  int64_t length() const override { return 3; }
  void reset() override {}

 private:
  std::vector<NamedTensor> states_;
};

// Two tokens after one column of padding; keys 1 2 and 3 4; logits that are not looked at.
class GrowingStates : public ::testing::Test {
 protected:
  GrowingStates() {
    golden::Golden& golden = stored.golden;
    golden.prompt = golden.tokens = {5, 6};
    golden.probes.push_back(record("layers.0.attn.k", {1, 2}, {1, 2, 3, 4}));
    golden.probes.push_back(record("logits", {2}, {1, 2, 3, 4}));
    leg.cache = CacheKind::kDynamic;
    plan.leg = &leg;
    plan.name = "steps";
    plan.columns = 3;
    plan.calls = {3};
    plan.rows = {{.input = "a", .tokens = {5, 6}, .pad = 1, .golden = &stored, .judged = 2}};
    call.columns = 3;
    call.trace.probes = {{"layers.0.attn.k", HostTensor({1, 3, 1, 2}, std::vector<float>{9, 9, 1, 2, 3, 4})},
                         {"logits", HostTensor({1, 3, 2}, std::vector<float>{9, 9, 1, 2, 3, 4})}};
  }

  static golden::Record record(const std::string& name, Shape shape, std::vector<float> values) {
    return {.name = name,
            .shape = std::move(shape),
            .positions = 2,
            .values = std::move(values),
            .norm = {std::sqrt(5.F), 5},
            .floor = {1e-6F, 1e-6F},
            .norm_floor = {1e-6F, 1e-6F},
            .scale = 4};
  }
  static std::vector<NamedTensor> cache(const Shape& shape, const std::vector<float>& values) {
    return {{"layers.0.attn.k_cache", HostTensor(shape, values)}};
  }
  std::optional<golden::Finding> judged(const std::vector<NamedTensor>& states) {
    Judge judge(probes, golden::Rule(), false);
    judge.after_call(plan, call, plan.rows, CacheSession(states));
    return judge.tally().first;
  }

  const std::vector<ProbeSpec> probes{
      {.name = "layers.0.attn.k", .shape = {1, 2}, .layer = 0},
      {.name = "logits", .shape = {2}},
      {.name = "layers.0.attn.k_cache", .shape = {1, 2}, .is_state = true, .layer = 0, .follows = "layers.0.attn.k"}};
  StoredGolden stored;
  Leg leg;
  LegPlan plan;
  CallRecord call;
};

TEST_F(GrowingStates, AreJudgedAtTheEndByTheProbeTheyFollow) {
  EXPECT_FALSE(judged(cache({1, 1, 3, 2}, {9, 9, 1, 2, 3, 4})));
  const auto wrong = judged(cache({1, 1, 3, 2}, {9, 9, 1, 2, 3, 4.5F}));
  ASSERT_TRUE(wrong);
  EXPECT_EQ(wrong->probe, "layers.0.attn.k_cache");
  EXPECT_EQ(wrong->layer, 0);
  EXPECT_EQ(wrong->position, 1);
  EXPECT_EQ(wrong->index, (std::vector<int64_t>{0, 1}));
}

TEST_F(GrowingStates, MissingOrMisshapenAreFindings) {
  const auto missing = judged({});
  ASSERT_TRUE(missing);
  EXPECT_EQ(missing->what, "missing");
  EXPECT_EQ(missing->probe, "layers.0.attn.k_cache");
  const auto short_one = judged(cache({1, 1, 2, 2}, {1, 2, 3, 4}));
  ASSERT_TRUE(short_one);
  EXPECT_EQ(short_one->what, "shape");
}

TEST_F(GrowingStates, AreNotLookedAtBetweenTheCutsNorWhereTheGoldenLacksTheProbe) {
  const auto wrong = cache({1, 1, 3, 2}, {9, 9, 1, 2, 3, 4.5F});
  plan.columns = 4;
  EXPECT_FALSE(judged(wrong));
  plan.columns = 3;
  EXPECT_TRUE(judged(wrong));
  stored.golden.probes.erase(stored.golden.probes.begin());
  EXPECT_FALSE(judged(wrong));
}

TEST_F(GrowingStates, OfTwoLegsAgreeOnTheRealColumnsEvenWithoutTheProbe) {
  for (const bool has_probe : {true, false}) {
    if (!has_probe) stored.golden.probes.erase(stored.golden.probes.begin());
    LegPlan other = plan;
    other.rows[0].pad = 0;
    const LegTrace padded{.plan = &plan, .rows = plan.rows, .states = cache({1, 1, 3, 2}, {9, 9, 1, 2, 3, 4})};
    LegTrace alone{.plan = &other, .rows = other.rows, .states = cache({1, 1, 2, 2}, {1, 2, 3, 4})};
    Judge right(probes, golden::Rule(), false);
    right.agree(alone, padded);
    EXPECT_FALSE(right.tally().first);
    EXPECT_GT(right.tally().elements, 0);
    alone.states = cache({1, 1, 2, 2}, {1, 2, 3, 4.01F});
    Judge wrong(probes, golden::Rule(), false);
    wrong.agree(alone, padded);
    ASSERT_TRUE(wrong.tally().first);
    EXPECT_EQ(wrong.tally().first->probe, "layers.0.attn.k_cache");
  }
}

}  // namespace
}  // namespace assay
