#include "reference/gated_op_entries.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "reference/ops/gated_delta_rule.hpp"
#include "reference/ops_table.hpp"
#include "reference/testing/models.hpp"
#include "reference/testing/values.hpp"

namespace assay::reference {
namespace {

struct Named {
  const char* name;
  at::Tensor value;
};

at::Tensor output(const OpResult& result, const std::string& name) {
  for (const NamedTensor& tensor : result.outputs)
    if (tensor.name == name) return to_aten(tensor.value);
  return {};
}

OpResult run(const std::string& op, const std::vector<Named>& inputs, std::map<std::string, double> attributes = {},
             const std::string& form = "") {
  OpCall call;
  call.op = op;
  call.form = form;
  for (const Named& input : inputs) call.inputs.push_back({input.name, to_host(input.value)});
  call.attributes = std::move(attributes);
  return run_reference_op(call);
}

const std::vector<Named> kRule = {{"q", values({2, 5, 2, 3}, 1)},       {"k", values({2, 5, 2, 3}, 2)},
                                  {"v", values({2, 5, 4, 6}, 3)},       {"g", values({2, 5, 4}, 4, -1, 0)},
                                  {"beta", values({2, 5, 4}, 5, 0, 1)}, {"initial_state", values({2, 4, 3, 6}, 6)}};

TEST(GatedOpEntries, DeltaRuleWithoutNormsIsTheOpItself) {
  for (const char* form : {"recurrent", "chunked"}) {
    const OpResult result = run("gated_delta_rule", kRule, {{"l2norm", 0}}, form);
    const GatedDeltaRule expected = gated_delta_rule_recurrent(kRule[0].value, kRule[1].value, kRule[2].value,
                                                               kRule[3].value, kRule[4].value, kRule[5].value);
    EXPECT_LT(difference(output(result, "o"), expected.o), 1e-12) << form;
    EXPECT_LT(difference(output(result, "final_state"), expected.final_state), 1e-12) << form;
  }
}

TEST(GatedOpEntries, DeltaRuleMakesGatesAndUnitLength) {
  std::vector<Named> inputs = kRule;
  const at::Tensor A = values({4}, 7, -2, -0.1), bias = values({4}, 8);
  inputs.insert(inputs.end(), {{"A", A}, {"dt_bias", bias}});
  const OpResult result = run("gated_delta_rule", inputs, {{"sigmoid", 1}, {"epsilon", 0.1}});
  const auto unit = [](const at::Tensor& x) { return x / (x.pow(2).sum(-1, true) + 0.1).sqrt(); };
  const GatedDeltaRule expected = gated_delta_rule_recurrent(
      unit(kRule[0].value) / std::sqrt(3.0), unit(kRule[1].value), kRule[2].value,
      A * at::log1p(at::exp(kRule[3].value + bias)), 1 / (1 + at::exp(-kRule[4].value)), kRule[5].value);
  EXPECT_LT(difference(output(result, "o"), expected.o), 1e-12);
  inputs.pop_back();
  expect_parts(refusal<InputError>([&] { run("gated_delta_rule", inputs); }), {"gated_delta_rule", "dt_bias"});
}

TEST(GatedOpEntries, ShortConvOfOneColumnIsItsLastTap) {
  const at::Tensor bcx = values({2, 1, 3, 4}, 1), weight = values({4, 3}, 2), bias = values({4}, 3);
  const OpResult result = run("short_conv", {{"bcx", bcx}, {"weight", weight}, {"bias", bias}});
  const at::Tensor gate_in = bcx.select(2, 0), gate_out = bcx.select(2, 1), x = bcx.select(2, 2);
  EXPECT_LT(difference(output(result, "y"), gate_out * (gate_in * x * weight.select(1, 2) + bias)), 1e-15);
  EXPECT_LT(difference(output(result, "final_state").select(2, 2), (gate_in * x).select(1, 0)), 1e-15);
  const OpResult padded =
      run("short_conv",
          {{"bcx", bcx}, {"weight", weight}, {"bias", bias}, {"mask", at::tensor({0, 1}, at::kByte).view({2, 1})}});
  EXPECT_EQ(output(padded, "y").select(0, 0).abs().max().item<double>(), 0);
  EXPECT_EQ(output(padded, "final_state").select(0, 0).abs().max().item<double>(), 0);
  EXPECT_EQ(difference(output(padded, "y").select(0, 1), output(result, "y").select(0, 1)), 0);
  expect_parts(refusal<InputError>([&] {
                 run("short_conv", {{"bcx", values({2, 1, 2, 4}, 1)}, {"weight", weight}});
               }),
               {"bcx", "2 parts"});
}

TEST(GatedOpEntries, NormsByHead) {
  const at::Tensor x = values({3, 2, 5}, 1), z = values({3, 2, 5}, 2), weight = values({5}, 3);
  const at::Tensor normed = x / (x.pow(2).mean(-1, true) + 0.01).sqrt();
  const at::Tensor gated = weight * normed * z / (1 + at::exp(-z));
  const std::map<std::string, double> epsilon = {{"epsilon", 0.01}};
  const OpResult shared = run("rms_norm_gated", {{"x", x}, {"z", z}, {"shared_weight", weight}}, epsilon);
  EXPECT_LT(difference(output(shared, "y"), gated), 1e-14);
  const OpResult own = run("rms_norm_gated", {{"x", x}, {"z", z}, {"weight", at::stack({weight, weight})}}, epsilon);
  EXPECT_LT(difference(output(own, "y"), gated), 1e-14);
  expect_parts(refusal<InputError>([&] { run("rms_norm_gated", {{"x", x}, {"z", z}}); }), {"exactly one"});

  const at::Tensor row = at::stack({z, x}, 1);  // [3, 2, 2, 5], the heads are slice 1
  const OpResult head =
      run("head_rms_norm", {{"x", row}, {"weight", weight}}, {{"epsilon", 0.01}, {"slice", 1}, {"zero_centred", 1}});
  EXPECT_LT(difference(output(head, "y"), (1 + weight) * normed), 1e-14);
  EXPECT_LT(difference(output(run("head_rms_norm", {{"x", row}}, {{"epsilon", 0.01}, {"slice", 1}}), "y"), normed),
            1e-14);
  const OpResult unit = run("l2norm", {{"x", row}}, {{"epsilon", 0.01}, {"slice", 1}, {"scale", 3}});
  EXPECT_LT(difference(output(unit, "y"), 3 * x / (x.pow(2).sum(-1, true) + 0.01).sqrt()), 1e-14);
  expect_parts(refusal<InputError>([&] { run("l2norm", {{"x", row}}, {{"slice", 2}}); }), {"slice", "2 slices"});
}

}  // namespace
}  // namespace assay::reference
