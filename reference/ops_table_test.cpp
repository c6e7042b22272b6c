#include "reference/ops_table.hpp"

#include <gtest/gtest.h>

#include "reference/ops/causal_conv1d.hpp"
#include "reference/ops/dt.hpp"
#include "reference/ops/gate.hpp"
#include "reference/ops/selective_scan.hpp"
#include "reference/ops/ssd.hpp"
#include "reference/testing/models.hpp"
#include "reference/testing/values.hpp"

namespace assay::reference {
namespace {

at::Tensor output(const OpResult& result, const std::string& name) {
  for (const NamedTensor& tensor : result.outputs)
    if (tensor.name == name) return to_aten(tensor.value);
  return {};
}

struct Named {
  const char* name;
  at::Tensor value;
};

OpCall op_call(const std::string& op, const std::string& form, const std::vector<Named>& inputs,
               std::map<std::string, double> attributes = {}) {
  OpCall call;
  call.op = op;
  call.form = form;
  for (const Named& input : inputs)
    if (input.value.defined()) call.inputs.push_back({input.name, to_host(input.value)});
  call.attributes = std::move(attributes);
  return call;
}

const std::vector<Named> kScan = {{"x", values({2, 3, 4}, 1)},        {"dt", values({2, 3, 4}, 2)},
                                  {"A", values({4, 5}, 3, -2, -0.1)}, {"B", values({2, 3, 1, 5}, 4)},
                                  {"C", values({2, 3, 1, 5}, 5)},     {"D", values({4}, 6)}};

const std::vector<Named> kSsd = {{"x", values({2, 7, 4, 3}, 1)},  {"dt", values({2, 7, 4}, 2)},
                                 {"A", values({4}, 3, -2, -0.1)}, {"B", values({2, 7, 2, 5}, 4)},
                                 {"C", values({2, 7, 2, 5}, 5)},  {"D", values({4}, 6)},
                                 {"dt_bias", values({4}, 7)},     {"initial_state", values({2, 4, 3, 5}, 8)}};

TEST(OpsTable, RunsEveryOpOfTheContractInBothPrecisions) {
  const std::vector<OpCall> calls = {
      op_call("embedding", "", {{"ids", at::tensor({0, 2}, at::kLong).view({1, 2})}, {"weight", values({3, 4}, 1)}}),
      op_call("linear", "", {{"x", values({2, 3}, 1)}, {"weight", values({5, 3}, 2)}, {"bias", values({5}, 3)}}),
      op_call("rms_norm", "", {{"x", values({2, 6}, 1)}, {"weight", values({6}, 2)}}, {{"epsilon", 1e-3}}),
      op_call("gated_rms_norm", "", {{"x", values({2, 6}, 1)}, {"z", values({2, 6}, 2)}, {"weight", values({6}, 3)}},
              {{"groups", 3}, {"epsilon", 1e-3}}),
      op_call("causal_conv1d", "sequence", {{"x", values({2, 5, 3}, 1)}, {"weight", values({3, 4}, 2)}}, {{"silu", 1}}),
      op_call("selective_scan", "recurrent", kScan),
      op_call("gather_columns", "", {{"x", values({2, 3}, 1)}, {"index", at::tensor({2, 0, 0, 1}, at::kLong)}}),
      op_call("ssd", "recurrent", kSsd),
      op_call("ssd", "chunked", kSsd, {{"chunk_size", 3}}),
  };
  for (const OpCall& call : calls) {
    const at::Tensor y = output(run_reference_op(call), "y");
    ASSERT_TRUE(y.defined()) << call.op;
    EXPECT_EQ(y.scalar_type(), at::kDouble) << call.op;
    OpCall single = call;
    for (NamedTensor& input : single.inputs)
      if (input.value.dtype() == DType::kF64) input.value = to_host(to_aten(input.value).to(at::kFloat));
    const at::Tensor rounded = output(run_reference_op(single), "y");
    EXPECT_EQ(rounded.scalar_type(), at::kFloat) << call.op;
    EXPECT_LT(difference(rounded, y), 1e-5) << call.op;
    EXPECT_GT(difference(rounded, y), 0) << call.op << ": float64 holds no more than float32";
  }
}

TEST(OpsTable, ResidualIsAddedBeforeTheNorm) {
  const at::Tensor x = values({2, 6}, 1), residual = values({2, 6}, 2), weight = values({6}, 3);
  const std::vector<Named> added = {{"x", x + residual}, {"weight", weight}};
  const std::vector<Named> apart = {{"x", x}, {"weight", weight}, {"residual", residual}};
  const OpResult result = run_reference_op(op_call("rms_norm", "", apart, {{"epsilon", 0.01}}));
  EXPECT_EQ(difference(output(result, "sum"), x + residual), 0);
  const OpResult plain = run_reference_op(op_call("rms_norm", "", added, {{"epsilon", 0.01}}));
  EXPECT_EQ(difference(output(result, "y"), output(plain, "y")), 0);
  EXPECT_FALSE(output(plain, "sum").defined());
}

TEST(OpsTable, DtBiasAndGateOfTheScan) {
  std::vector<Named> inputs = kScan;
  const at::Tensor bias = values({4}, 8), z = values({2, 3, 4}, 9), state = values({2, 4, 5}, 10);
  inputs.insert(inputs.end(), {{"dt_bias", bias}, {"z", z}, {"initial_state", state}});
  const OpResult result = run_reference_op(op_call("selective_scan", "", inputs));
  const SelectiveScan expected =
      reference::selective_scan(kScan[0].value, reference::dt(kScan[1].value, bias), kScan[2].value,
                                kScan[3].value.squeeze(2), kScan[4].value.squeeze(2), kScan[5].value, state);
  EXPECT_EQ(difference(output(result, "y"), reference::gate(expected.y, z)), 0);
  EXPECT_EQ(difference(output(result, "final_state"), expected.final_state), 0);
}

TEST(OpsTable, DtLimitsOfSsdApplyOnlyWithABias) {
  const std::map<std::string, double> limits = {{"dt_min", 0.6}, {"dt_max", 0.9}};
  const OpResult limited = run_reference_op(op_call("ssd", "", kSsd, limits));
  const at::Tensor step = reference::dt(kSsd[1].value, kSsd[6].value, 0.6, 0.9);
  const auto direct = [&](const at::Tensor& dt) {
    return ssd_recurrent(kSsd[0].value, dt, kSsd[2].value, kSsd[3].value, kSsd[4].value, kSsd[5].value, kSsd[7].value);
  };
  EXPECT_EQ(difference(output(limited, "y"), direct(step).y), 0);
  std::vector<Named> unbiased = kSsd;
  unbiased[6].value = at::Tensor();
  EXPECT_EQ(difference(output(run_reference_op(op_call("ssd", "", unbiased, limits)), "y"), direct(kSsd[1].value).y),
            0);
}

TEST(OpsTable, MaskOfTheConvolutionIsBytes) {
  const at::Tensor x = values({2, 5, 3}, 1), weight = values({3, 4}, 2);
  at::Tensor mask = at::ones({2, 5}, at::kByte);
  mask.select(0, 1).narrow(0, 0, 2).zero_();
  for (const char* form : {"sequence", "update"}) {
    const OpResult result =
        run_reference_op(op_call("causal_conv1d", form, {{"x", x}, {"weight", weight}, {"mask", mask}}, {{"silu", 0}}));
    const CausalConv1d expected = causal_conv1d(x, weight, {}, {}, mask.to(at::kDouble), false);
    EXPECT_LT(difference(output(result, "y"), expected.y), 1e-15) << form;
  }
}

TEST(OpsTable, RefusesByName) {
  const auto unsupported = [](const OpCall& call) {
    return refusal<UnsupportedError>([&] { run_reference_op(call); });
  };
  const auto refused = [](const OpCall& call) { return refusal<InputError>([&] { run_reference_op(call); }); };
  expect_parts(unsupported(op_call("transformer", "", {})), {"transformer", "selective_scan"});
  expect_parts(unsupported(op_call("ssd", "diagonal", kSsd)), {"diagonal", "chunked"});
  expect_parts(unsupported(op_call("linear", "blocked", {})), {"linear"});

  expect_parts(refused(op_call("linear", "", {{"x", values({2, 3}, 1)}})), {"linear", "weight", "missing"});
  expect_parts(refused(op_call("linear", "", {{"x", values({2, 3}, 1)}, {"weight", values({5, 4}, 1)}})),
               {"weight", "[5, 4]", "3"});
  expect_parts(refused(op_call("linear", "", {{"x", values({2, 3}, 1)}, {"weight", values({5, 3}, 1).to(at::kFloat)}})),
               {"weight", "float32", "float64"});
  std::vector<Named> misnamed = kSsd;
  misnamed[6].name = "bias";
  expect_parts(refused(op_call("ssd", "", misnamed)), {"bias", "not an input"});
  expect_parts(refused(op_call("ssd", "", kSsd, {{"chunk", 4}})), {"chunk", "not an attribute"});
  expect_parts(refused(op_call("ssd", "chunked", kSsd, {{"chunk_size", 0}})), {"chunk_size"});
  std::vector<Named> three_groups = kSsd;
  three_groups[3].value = three_groups[4].value = values({2, 7, 3, 5}, 4);
  expect_parts(refused(op_call("ssd", "", three_groups)), {"3 groups", "4 heads"});
  expect_parts(refused(op_call("gated_rms_norm", "",
                               {{"x", values({2, 6}, 1)}, {"z", values({2, 6}, 2)}, {"weight", values({6}, 3)}},
                               {{"groups", 4}})),
               {"4 groups", "6 channels"});
  expect_parts(refused(op_call("embedding", "",
                               {{"ids", at::tensor({3}, at::kLong).view({1, 1})}, {"weight", values({3, 4}, 1)}})),
               {"3 rows"});
}

}  // namespace
}  // namespace assay::reference
