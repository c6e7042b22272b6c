#include "runners/leg_plan.hpp"

#include <gtest/gtest.h>

#include "cases/spec/error.hpp"
#include "runners/testing/fixture.hpp"

namespace assay {
namespace {

using Sizes = std::vector<int64_t>;

CallSize columns(int64_t count) { return {CallSize::Kind::kColumns, count}; }
CallSize each() { return {CallSize::Kind::kEach, 0}; }
CallSize rest() { return {CallSize::Kind::kRest, 0}; }

TEST(CallSizes, EachRestAndNumbers) {
  EXPECT_EQ(call_sizes({}, 5, "leg"), Sizes({5}));
  EXPECT_EQ(call_sizes({rest()}, 5, "leg"), Sizes({5}));
  EXPECT_EQ(call_sizes({columns(2), rest()}, 5, "leg"), Sizes({2, 3}));
  EXPECT_EQ(call_sizes({columns(2), each()}, 5, "leg"), Sizes({2, 1, 1, 1}));
  EXPECT_EQ(call_sizes({columns(2), columns(3), rest()}, 5, "leg"), Sizes({2, 3}));
}

TEST(CallSizes, RefusesWhatDoesNotFit) {
  EXPECT_THROW(call_sizes({columns(6)}, 5, "leg"), InputError);
  EXPECT_THROW(call_sizes({columns(2), columns(2)}, 5, "leg"), InputError);  // a column would never be run
  EXPECT_THROW(call_sizes({columns(0), rest()}, 5, "leg"), InputError);
}

TEST(Forms, StarBecomesOneLegAForm) {
  Capabilities capabilities;
  capabilities.forms = {{"ssd", {"chunked", "recurrent"}}, {"causal_conv1d", {"sequence", "update"}}};
  Leg leg;
  leg.forms = {{"ssd", "*"}};
  const std::vector<FormChoice> choices = expand_forms(leg, capabilities);
  ASSERT_EQ(choices.size(), 2U);
  EXPECT_EQ(choices[0].forms.at("ssd"), "chunked");
  EXPECT_EQ(choices[1].forms.at("ssd"), "recurrent");
  EXPECT_EQ(choices[1].suffix, "[ssd=recurrent]");
  EXPECT_TRUE(choices[1].is_expanded);

  leg.forms = {{"ssd", "*"}, {"causal_conv1d", "*"}};
  EXPECT_EQ(expand_forms(leg, capabilities).size(), 4U);
}

TEST(Forms, AnUndeclaredOpRunsOnceInItsDefault) {
  Leg leg;
  leg.forms = {{"ssd", "*"}};
  const std::vector<FormChoice> choices = expand_forms(leg, Capabilities());
  ASSERT_EQ(choices.size(), 1U);
  EXPECT_TRUE(choices[0].forms.empty());
  EXPECT_FALSE(choices[0].is_expanded);
}

TEST(Forms, ANamedFormThatIsNotDeclaredSkips) {
  Capabilities capabilities;
  capabilities.forms = {{"ssd", {"chunked"}}};
  Leg leg;
  leg.forms = {{"ssd", "recurrent"}};
  try {
    expand_forms(leg, capabilities);
    FAIL() << "no skip";
  } catch (const NoVerdict& end) {
    EXPECT_EQ(end.status, Status::kSkip);
    EXPECT_EQ(end.skip, SkipReason::kNoForm);
  }
}

std::vector<RowPlan> padded_rows() {
  RowPlan a, b;
  a.tokens = {5, 6, 7, 8};
  b.tokens = {9, 10};
  b.pad = 2;
  return {a, b};
}

TEST(Columns, PaddingIsOnTheLeft) {
  const HostTensor tokens = token_block(padded_rows(), 1, 0, 4);
  EXPECT_EQ(tokens.shape(), Shape({2, 4}));
  const std::span<const int64_t> values = tokens.values<int64_t>();
  EXPECT_EQ(Sizes(values.begin(), values.end()), Sizes({5, 6, 7, 8, 1, 1, 9, 10}));
  const HostTensor later = token_block(padded_rows(), 1, 1, 2);
  const std::span<const int64_t> part = later.values<int64_t>();
  EXPECT_EQ(Sizes(part.begin(), part.end()), Sizes({6, 7, 1, 9}));
}

TEST(Columns, TheMaskCoversAllColumnsSoFar) {
  const HostTensor mask = mask_block(padded_rows(), 3);
  EXPECT_EQ(mask.shape(), Shape({2, 3}));
  const std::span<const uint8_t> values = mask.values<uint8_t>();
  EXPECT_EQ(std::vector<int>(values.begin(), values.end()), std::vector<int>({1, 1, 1, 0, 0, 1}));
  EXPECT_TRUE(mask_block({padded_rows()[0]}, 3).absent());
}

TEST(Columns, RealSpansOfACall) {
  const auto expect_span = [](const Span& span, int64_t column, int64_t position, int64_t count) {
    EXPECT_EQ(span.count, count);
    if (count == 0) return;
    EXPECT_EQ(span.column, column);
    EXPECT_EQ(span.position, position);
  };
  expect_span(real_span(0, 4, 0), 0, 0, 4);
  expect_span(real_span(0, 4, 3), 3, 0, 1);
  expect_span(real_span(0, 3, 3), 0, 0, 0);  // padding only
  expect_span(real_span(3, 2, 3), 0, 0, 2);  // begins where the padding ends
  expect_span(real_span(5, 2, 3), 0, 2, 2);
}

class Plans : public ::testing::Test {
 protected:
  Plans() {
    for (const char* input : {"a", "b", "greedy"})
      goldens.put(testing::recorded(testing::tiny_subject(), config, input));
  }
  std::vector<LegPlan> plan(const std::string& legs) {
    test_case = testing::small_case(legs);
    return plan_legs(test_case, config, testing::tiny_subject().capabilities(), goldens);
  }
  ModelConfig config = testing::small_config();
  GoldenStore goldens{"nowhere"};
  Case test_case;
};

TEST_F(Plans, LengthsArePrefixesOfTheWholeSequence) {
  const std::vector<LegPlan> plans = plan(R"([{"name": "l", "rows": [{"input": "a", "length": 4}]},
                                              {"name": "g", "rows": [{"input": "greedy"}]}])");
  EXPECT_EQ(plans[0].rows[0].tokens, Sizes({3, 9, 14, 2}));
  EXPECT_EQ(plans[0].rows[0].judged, 4);
  EXPECT_EQ(plans[1].columns, 15);  // prompt and greedy tokens
}

TEST_F(Plans, AFreeRunningRowStartsAfterItsPrompt) {
  const std::vector<LegPlan> plans =
      plan(R"([{"name": "f", "rows": [{"input": "greedy"}], "cache": "dynamic", "free_running": true}])");
  EXPECT_EQ(plans[0].columns, 3);
  EXPECT_EQ(plans[0].rows[0].judged, 15);
  EXPECT_EQ(plans[0].limit, 15);
}

TEST_F(Plans, AStaticCacheHasTheLimitAskedForOrWhatItsRequestsNeed) {
  const auto limit_of = [this](const std::string& more) {
    return plan(R"([{"name": "s", "rows": [{"input": "a", "length": 6, "pad": 1}], "cache": "static")" + more + "}]")
        .at(0)
        .limit;
  };
  const std::string before = R"(, "before": {"input": "b"})";
  EXPECT_EQ(limit_of(""), 7);
  EXPECT_EQ(limit_of(before), 9);
  EXPECT_EQ(limit_of(before + R"(, "limit": 20)"), 20);
  EXPECT_THROW(limit_of(R"(, "limit": 6)"), InputError);
  EXPECT_THROW(limit_of(before + R"(, "limit": 8)"), InputError);
}

TEST_F(Plans, AChangeIsJudgedBeforeItOnly) {
  const std::vector<LegPlan> plans =
      plan(R"([{"name": "c", "rows": [{"input": "a", "change": {"position": 5, "token": 8}}]}])");
  EXPECT_EQ(plans[0].rows[0].tokens[5], 8);
  EXPECT_EQ(plans[0].rows[0].judged, 5);
  EXPECT_THROW(plan(R"([{"name": "c", "rows": [{"input": "a", "change": {"position": 5, "token": 7}}]}])"), InputError)
      << "the token it has already";
}

TEST_F(Plans, RowsOfUnlikeWidthAreRefused) {
  EXPECT_THROW(plan(R"([{"name": "l", "rows": [{"input": "a"}, {"input": "b", "length": 4}]}])"), InputError);
}

TEST_F(Plans, AMissingOrStaleGoldenEndsTheCase) {
  try {
    plan(R"([{"name": "l", "rows": [{"input": "one"}]}])");
    FAIL() << "no golden, yet planned";
  } catch (const NoVerdict& end) {
    EXPECT_EQ(end.status, Status::kNoGolden);
  }
  golden::Golden other = testing::recorded(testing::tiny_subject(), config, "a");
  other.config_digest = std::string(64, '0');
  goldens.put(other);
  try {
    plan(R"([{"name": "l", "rows": [{"input": "a"}]}])");
    FAIL() << "stale, yet planned";
  } catch (const NoVerdict& end) {
    EXPECT_EQ(end.status, Status::kStale);
  }
}

}  // namespace
}  // namespace assay
