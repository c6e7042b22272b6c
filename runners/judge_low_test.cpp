#include "runners/judge_low.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "runners/goldens.hpp"

namespace assay {
namespace {

class NoSession : public Session {
 public:
  Trace forward(const Call&) override { return {}; }
  std::vector<NamedTensor> states() const override { return {}; }
  int64_t length() const override { return 0; }
  void reset() override {}
};

constexpr int64_t kLength = 12;

// Twelve tokens after two columns of padding. R is 0 everywhere, in two logits and in one probe of scale 1 before them;
// P is 1 at every position in bfloat16. Floors are 1/1024, so the median may be 2 + 1/128 and the largest 3 + 1/128.
class LowPrecision : public ::testing::Test {
 protected:
  LowPrecision() {
    golden::Golden& golden = stored.golden;
    golden.model = "mamba", golden.config = "small", golden.input = "a", golden.kind = "bf16";
    for (int64_t t = 0; t < kLength; ++t) golden.tokens.push_back(t);
    golden.prompt = golden.tokens;
    golden.probes = {record("layers.0.mixer.conv1d"), record("logits")};
    golden.errors.push_back({.compute = "bfloat16", .logits = std::vector<float>(kLength, 1)});
  }

  static golden::Record record(const std::string& name) {
    return {.name = name,
            .shape = {2},
            .positions = kLength,
            .values = std::vector<float>(2 * kLength, 0),
            .norm = std::vector<float>(kLength, 0),
            .floor = std::vector<float>(kLength, 1.F / 1024),
            .norm_floor = std::vector<float>(kLength, 1.F / 1024),
            .scale = 1};
  }

  LegPlan plan(const std::string& name, CacheKind cache) {
    legs.push_back(std::make_unique<Leg>());
    legs.back()->name = name;
    legs.back()->cache = cache;
    LegPlan made;
    made.leg = legs.back().get();
    made.name = name;
    made.rows = {{.input = "a", .tokens = stored.golden.tokens, .pad = 2, .golden = &stored, .judged = kLength}};
    return made;
  }

  // Logit 1 of every position, one call a column after a prefill of `prefill` columns.
  LegTrace run(LowPrecisionJudge& judge, const LegPlan& leg, const std::vector<float>& errors, int64_t prefill,
               const std::vector<float>& conv = std::vector<float>(kLength, 0)) {
    LegTrace trace;
    trace.plan = &leg;
    trace.rows = leg.rows;
    for (int64_t first = 0; first < kLength + 2;) {
      CallRecord call;
      call.step = static_cast<int64_t>(trace.calls.size());
      call.first = call.judge_from = first;
      call.columns = first == 0 ? prefill : 1;
      std::vector<float> logits, probe;
      for (int64_t column = first; column < first + call.columns; ++column) {
        const bool is_real = column >= 2;
        const auto at = static_cast<size_t>(is_real ? column - 2 : 0);
        probe.push_back(is_real ? conv[at] : 99.F);
        probe.push_back(0);
        logits.push_back(is_real ? 0.F : 99.F);
        logits.push_back(errors[at]);
      }
      call.trace.probes = {{"layers.0.mixer.conv1d", HostTensor({1, call.columns, 2}, probe)},
                           {"logits", HostTensor({1, call.columns, 2}, logits)}};
      first += call.columns;
      const bool go_on = judge.after_call(leg, call, leg.rows, NoSession());
      trace.calls.push_back(std::move(call));
      if (!go_on) return trace;
    }
    judge.after_leg(leg, trace);
    return trace;
  }

  StoredGolden stored;
  std::vector<std::unique_ptr<Leg>> legs;
};

std::vector<float> all(float error) { return std::vector<float>(kLength, error); }

TEST_F(LowPrecision, PassesErrorsOfTheOriginalsSize) {
  LowPrecisionJudge judge(DType::kBF16, {}, false);
  run(judge, plan("whole", CacheKind::kNone), all(1), kLength + 2);
  EXPECT_FALSE(judge.tally().first);
  EXPECT_EQ(judge.hollow(), "");
  EXPECT_NEAR(judge.tally().used, 1 / (2 + 1 / 128.0), 1e-9);
  EXPECT_EQ(judge.tally().elements, 24);
}

TEST_F(LowPrecision, FailsWithTheFirstPositionItsStepAndTheProbeThatWentFar) {
  LowPrecisionJudge judge(DType::kBF16, {}, false);
  std::vector<float> errors = all(1), conv = all(0);
  errors[7] = errors[8] = 5;
  conv[6] = 0.25;  // 64 roundings of 1/256
  run(judge, plan("each", CacheKind::kDynamic), errors, 3, conv);
  const auto& first = judge.tally().first;
  ASSERT_TRUE(first);
  EXPECT_EQ(first->probe, "logits");
  EXPECT_EQ(first->what, "largest");
  EXPECT_EQ(first->bad, 2);
  EXPECT_EQ(first->position, 7);
  EXPECT_EQ(first->step, 7);  // columns 0 to 2 in call 0, so position 7 in column 9 is call 7
  EXPECT_EQ(judge.leg(), "each");
  EXPECT_DOUBLE_EQ(first->got, 5);
  EXPECT_NE(first->detail.find("layers.0.mixer.conv1d at position 6 step 6, 64 roundings"), std::string::npos)
      << first->detail;
}

TEST_F(LowPrecision, CachedStepsAreGatedByThemselves) {
  stored.golden.errors[0].logits.assign(kLength, 4);
  for (size_t p = 4; p < kLength; ++p) stored.golden.errors[0].logits[p] = 1;
  std::vector<float> errors = all(0.5);
  errors[5] = 3.5;  // below 3 * 4, the largest of the whole row
  LowPrecisionJudge whole(DType::kBF16, {}, false);
  run(whole, plan("whole", CacheKind::kNone), errors, kLength + 2);
  EXPECT_FALSE(whole.tally().first);
  LowPrecisionJudge steps(DType::kBF16, {}, false);
  run(steps, plan("from_4", CacheKind::kDynamic), errors, 6);  // two of padding and positions 0 to 3
  ASSERT_TRUE(steps.tally().first);
  EXPECT_EQ(steps.tally().first->what, "largest of steps");
  EXPECT_EQ(steps.tally().first->position, 5);
}

TEST_F(LowPrecision, NotANumberEndsTheLegWhereItIs) {
  LowPrecisionJudge judge(DType::kBF16, {}, false);
  std::vector<float> errors = all(0);
  errors[9] = std::numeric_limits<float>::quiet_NaN();
  stored.golden.errors[0].marked = {6};
  run(judge, plan("each", CacheKind::kDynamic), errors, 3);
  const auto& first = judge.tally().first;
  ASSERT_TRUE(first);
  EXPECT_EQ(first->what, "not finite");
  EXPECT_EQ(first->position, 9);
  EXPECT_EQ(first->step, 9);
}

TEST_F(LowPrecision, MissingLogitsAreAFinding) {
  LowPrecisionJudge judge(DType::kBF16, {}, false);
  const LegPlan leg = plan("whole", CacheKind::kNone);
  CallRecord call;
  call.columns = kLength + 2;
  EXPECT_FALSE(judge.after_call(leg, call, leg.rows, NoSession()));
  EXPECT_EQ(judge.tally().first->what, "missing");
}

// Each leg is within its own allowance, and they are on either side of R: 1.5 + 1.5 > 1.4142 * (2 + 1/128).
TEST_F(LowPrecision, LegsAreComparedBySizeOfTheOriginalsError) {
  LowPrecisionJudge judge(DType::kBF16, {}, false);
  const LegPlan a = plan("whole", CacheKind::kNone), b = plan("each", CacheKind::kDynamic);
  const LegPlan c = plan("each", CacheKind::kDynamic);
  const LegTrace whole = run(judge, a, all(1.5F), kLength + 2), near = run(judge, b, all(-1.25F), 3),
                 far = run(judge, c, all(-1.5F), 3);
  ASSERT_FALSE(judge.tally().first);
  judge.agree(whole, near);
  EXPECT_FALSE(judge.tally().first);
  judge.agree(whole, far);
  const auto& first = judge.tally().first;
  ASSERT_TRUE(first);
  EXPECT_EQ(judge.leg(), "whole = each");
  EXPECT_EQ(first->what, "median");
  EXPECT_EQ(first->position, 0);
  EXPECT_DOUBLE_EQ(first->expected, 1.5);
  EXPECT_DOUBLE_EQ(first->got, -1.5);
}

TEST_F(LowPrecision, RefusesWhatItCannotJudge) {
  const auto refusal = [](const LegPlan& leg, DType compute) {
    try {
      check_low_precision({leg}, compute);
    } catch (const NoVerdict& end) {
      return std::string(status_name(end.status));
    }
    return std::string();
  };
  LegPlan leg = plan("whole", CacheKind::kNone);
  EXPECT_EQ(refusal(leg, DType::kBF16), "");
  EXPECT_EQ(refusal(leg, DType::kF16), "NO_GOLDEN");
  leg.rows[0].change = Row::Change{3, 1};
  EXPECT_EQ(refusal(leg, DType::kBF16), "SKIP");
  leg = plan("free", CacheKind::kNone);
  legs.back()->free_running = true;
  EXPECT_EQ(refusal(leg, DType::kBF16), "SKIP");
}

}  // namespace
}  // namespace assay
