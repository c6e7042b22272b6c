#include "golden/tokens.hpp"

#include <gtest/gtest.h>

#include "cases/spec/error.hpp"

namespace assay::golden {
namespace {

// Prompt of 2, 10 greedy tokens; every gap 1, every bound 1/4, so that a gap of 1/2 is a tie.
Golden run() {
  Golden golden;
  golden.prompt = {5, 6};
  golden.tokens = {5, 6, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19};
  golden.gap.assign(12, 1);
  return golden;
}
const Bounds kBounds{.element = std::vector<double>(12, 0.25), .norm = {}};

TEST(JudgeTokens, ComparesAllWithoutANearTie) {
  const Golden golden = run();
  const TokenJudgement result = judge_tokens(golden, golden.tokens, kBounds);
  EXPECT_EQ(result.judged, 10);
  EXPECT_FALSE(result.first);
  EXPECT_FALSE(result.near_tie);
  EXPECT_EQ(result.hollow, "");
}

TEST(JudgeTokens, FirstMismatchIsAFinding) {
  const Golden golden = run();
  std::vector<int64_t> tokens = golden.tokens;
  tokens[4] = 99;
  tokens[5] = 98;
  const TokenJudgement result = judge_tokens(golden, tokens, kBounds);
  ASSERT_TRUE(result.first);
  EXPECT_EQ(result.first->what, "token");
  EXPECT_EQ(result.first->position, 4);
  EXPECT_EQ(result.first->expected, 12);
  EXPECT_EQ(result.first->got, 99);
  EXPECT_EQ(result.judged, 3);
  EXPECT_EQ(result.hollow, "");
}

TEST(JudgeTokens, StopBeforeTheTokenOfANearTie) {
  Golden golden = run();
  golden.gap[9] = 0.5;  // the logits that choose token 10
  std::vector<int64_t> tokens = golden.tokens;
  tokens[10] = tokens[11] = 99;
  const TokenJudgement result = judge_tokens(golden, tokens, kBounds);
  EXPECT_FALSE(result.first);
  EXPECT_EQ(result.near_tie, 9);
  EXPECT_EQ(result.judged, 8);
  EXPECT_EQ(result.hollow, "");
  golden.gap[9] = 0.5009765625f;  // just above: no tie, so the mismatch counts
  EXPECT_EQ(judge_tokens(golden, tokens, kBounds).first->position, 10);
}

TEST(JudgeTokens, ATieInsideThePromptIsNobodysChoice) {
  Golden golden = run();
  golden.gap[0] = 0;
  EXPECT_EQ(judge_tokens(golden, golden.tokens, kBounds).judged, 10);
  golden.gap[1] = 0;  // chooses the first greedy token
  const TokenJudgement result = judge_tokens(golden, golden.tokens, kBounds);
  EXPECT_EQ(result.judged, 0);
  EXPECT_EQ(result.near_tie, 1);
  EXPECT_NE(result.hollow, "");
}

TEST(JudgeTokens, TooFewJudgedIsHollow) {
  Golden golden = run();
  golden.gap[8] = 0.1f;
  EXPECT_EQ(judge_tokens(golden, golden.tokens, kBounds).hollow,
            "only 7 of 10 generated tokens could be judged; near-tie at position 8");
  // Eight of eighteen are fewer than half.
  golden = run();
  for (int64_t token = 20; token < 28; ++token) golden.tokens.push_back(token);
  golden.gap.assign(20, 1);
  const Bounds bounds{.element = std::vector<double>(20, 0.25), .norm = {}};
  golden.gap[9] = 0;
  EXPECT_NE(judge_tokens(golden, golden.tokens, bounds).hollow, "");
  golden.gap[9] = 1;
  golden.gap[10] = 0;  // nine of eighteen are half
  EXPECT_EQ(judge_tokens(golden, golden.tokens, bounds).hollow, "");
  // A subject that stopped early is not judged on what it did not say.
  EXPECT_NE(judge_tokens(run(), std::span(golden.tokens).first(7), kBounds).hollow, "");
}

TEST(JudgeTokens, RefusesAnotherPromptAndMisfitBounds) {
  const Golden golden = run();
  EXPECT_THROW(judge_tokens(golden, std::vector<int64_t>{5, 7, 10}, kBounds), InputError);
  EXPECT_THROW(judge_tokens(golden, std::vector<int64_t>{5}, kBounds), InputError);
  EXPECT_THROW(judge_tokens(golden, golden.tokens, Bounds{}), InputError);
}

}  // namespace
}  // namespace assay::golden
