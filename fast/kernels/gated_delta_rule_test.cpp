// What the launchers refuse before they touch a device.
#include "fast/kernels/gated_delta_rule.hpp"

#include <gtest/gtest.h>

#include "cases/spec/error.hpp"
#include "fast/kernels/gated_rms_norm.hpp"
#include "fast/kernels/head_norm.hpp"
#include "fast/kernels/short_conv.hpp"

namespace assay::fast {
namespace {

float memory[4];  // stands for device memory that is never read

GatedDeltaRuleParams<float> delta_rule() {
  GatedDeltaRuleParams<float> p;
  p.q = p.k = p.v = p.g = p.beta = memory;
  p.o = memory;
  p.workspace = memory;
  p.batch = 2;
  p.length = 130;
  p.key_heads = 2;
  p.value_heads = 6;
  p.key_dim = 5;
  p.value_dim = 7;
  p.q_stride = p.k_stride = 10;
  p.v_stride = 42;
  p.g_stride = p.beta_stride = 6;
  return p;
}

template <class Params>
void expect_refused(Params p, void (*run)(const Params&, cudaStream_t), const std::string& part) {
  try {
    run(p, nullptr);
    ADD_FAILURE() << "not refused: " << part;
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

TEST(GatedDeltaRule, WorkspaceGrowsWithChunks) {
  GatedDeltaRuleParams<float> p = delta_rule();
  const size_t three = gated_delta_rule_workspace_bytes(p);
  p.length = 64;
  const size_t one = gated_delta_rule_workspace_bytes(p);
  EXPECT_EQ(three, 3 * one);
  EXPECT_EQ(one, size_t{2 * 6 * 64 * 132 * 4});
  p.length = 1;
  EXPECT_EQ(gated_delta_rule_workspace_bytes(p), one);
}

TEST(GatedDeltaRule, RefusesByField) {
  const auto refused = [](void (*change)(GatedDeltaRuleParams<float>&), const std::string& part) {
    GatedDeltaRuleParams<float> p = delta_rule();
    change(p);
    expect_refused(p, gated_delta_rule_chunked<float>, part);
  };
  refused([](auto& p) { p.k = nullptr; }, "k is null");
  refused([](auto& p) { p.workspace = nullptr; }, "workspace is null");
  refused([](auto& p) { p.key_heads = 4; }, "key_heads = 4 does not divide value_heads = 6");
  refused([](auto& p) { p.key_dim = kDeltaRuleKeyDim + 1; }, "key_dim = 129");
  refused([](auto& p) { p.length = 0; }, "length = 0");
  refused([](auto& p) { p.v_stride = 41; }, "v_stride = 41");
  refused([](auto& p) { p.dt_bias = memory; }, "a and dt_bias");
  refused([](auto& p) { p.epsilon = -1; }, "epsilon");
  GatedDeltaRuleUpdateParams<float> step;
  step.q = step.k = step.v = step.g = step.beta = memory;
  step.o = memory;
  step.batch = step.key_heads = step.value_heads = step.key_dim = step.value_dim = 1;
  step.q_stride = step.k_stride = step.v_stride = step.g_stride = step.beta_stride = 1;
  expect_refused(step, gated_delta_rule_update<float>, "state is null");
}

TEST(ShortConv, RefusesByField) {
  ShortConvParams<float> p;
  p.gate_in = p.gate_out = p.x = p.weight = memory;
  p.y = memory;
  p.batch = p.length = 1;
  p.channels = 2;
  p.stride = 2;
  p.taps = 5;
  expect_refused(p, short_conv<float>, "taps = 5");
  p.taps = 3;
  p.stride = 1;
  expect_refused(p, short_conv<float>, "stride = 1");
}

TEST(Norms, RefuseByField) {
  GatedRmsNormParams<float> gated;
  gated.x = gated.z = gated.weight = memory;
  gated.y = memory;
  gated.rows = 1;
  gated.width = gated.z_stride = 6;
  gated.groups = 4;
  expect_refused(gated, rms_norm_gated<float>, "groups = 4 does not divide width = 6");
  HeadRmsNormParams<float> head;
  head.x = memory;
  head.y = memory;
  head.rows = 1;
  head.heads = 2;
  head.width = head.x_stride = 3;
  head.y_stride = 6;
  expect_refused(head, head_rms_norm<float>, "x_stride = 3");
}

}  // namespace
}  // namespace assay::fast
