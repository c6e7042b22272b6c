#include "runners/capability.hpp"

#include <gtest/gtest.h>

namespace assay {
namespace {

TEST(Fallback, EveryOpNeedsAKernelInSomeLeg) {
  const LegKernels prefill{{}, {"ssd_chunked_f32@sm_90"}}, step{{}, {"rms_norm_f32@sm_90"}};
  EXPECT_EQ(fallback_reason({"ssd", "rms_norm"}, {prefill, step}), "");
  EXPECT_NE(fallback_reason({"ssd", "linear"}, {prefill, step}).find("linear"), std::string::npos);
}

TEST(Fallback, AKernelThatHoldsTheOpBetweenOthersCounts) {
  const LegKernels leg{{{"causal_conv1d", "update"}}, {"short_conv_update_f32@sm_90", "rms_norm_gated_f32@sm_90"}};
  EXPECT_EQ(fallback_reason({"causal_conv1d", "gate", "gated_rms_norm"}, {leg}), "");
  EXPECT_NE(fallback_reason({"ssd"}, {leg}), "");
}

TEST(Fallback, AFormIsAskedOfItsOwnLeg) {
  const LegKernels chunked{{{"ssd", "chunked"}}, {"ssd_chunked_f32@sm_90"}};
  const LegKernels update{{{"ssd", "update"}}, {"ssd_chunked_f32@sm_90"}};
  EXPECT_EQ(fallback_reason({"ssd"}, {chunked}), "");
  EXPECT_NE(fallback_reason({"ssd"}, {chunked, update}).find("update"), std::string::npos);
}

TEST(Fallback, StepsThroughAStaticCacheAreReplaysWhereTheSubjectSaysSo) {
  LegKernels leg{{}, {"ssd_update_f32@sm_90"}, /*must_replay=*/true};
  EXPECT_NE(fallback_reason({"ssd"}, {leg}).find("captured graph"), std::string::npos);
  leg.kernels = {"ssd_update_f32@sm_90", "step_graph_replay_f32@sm_90"};
  EXPECT_EQ(fallback_reason({"ssd"}, {leg}), "");
}

TEST(HasWarmSteps, ACallOfOneColumnBehindOthers) {
  Leg leg;
  LegPlan plan;
  plan.leg = &leg;
  for (const auto& [calls, expected] : std::vector<std::pair<std::vector<int64_t>, bool>>{
           {{}, false}, {{1}, false}, {{1, 1}, true}, {{32, 1}, true}, {{20, 13}, false}}) {
    plan.calls = calls;
    EXPECT_EQ(has_warm_steps(plan), expected) << calls.size();
  }
  plan.calls = {9};
  leg.free_running = true;
  EXPECT_TRUE(has_warm_steps(plan));
}

}  // namespace
}  // namespace assay
