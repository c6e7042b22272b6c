#include "runners/ops/run_ops.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "cases/spec/error.hpp"
#include "runners/ops/problems.hpp"
#include "runners/testing/op_subject.hpp"

namespace assay {
namespace {

using Json = nlohmann::json;
using testing::OpFaults;
using testing::OpSubject;

OpCase op_case(const std::string& op, const char* shapes, const Json& more = Json::object()) {
  Json text = {{"schema", "assay.op_case/1"},
               {"tier", "ci"},
               {"why", "a sentence that says which fault it exposes"},
               {"seed", 7},
               {"shapes", Json::parse(shapes)}};
  text.update(more);
  return parse_op_case(text, "case.json", op, "one");
}

// L 1 and 4, with a state.
OpCase conv_case(const Json& more = Json::object()) {
  Json all = {{"inputs", {{"bias", {true}}, {"initial_state", {true}}}}};
  all.update(more);
  return op_case("causal_conv1d", R"([{"B": 2, "L": [1, 4], "C": 3, "K": 4}])", all);
}

Verdict run(const OpCase& test_case, OpFaults faults = {}, bool is_accelerated = true) {
  OpSubject subject("subject", is_accelerated, faults), reference("reference");
  return run_op_case(test_case, subject, reference);
}

TEST(Problems, DrawByPhiloxFromNamesAndSeed) {
  const OpCase test_case = op_case("rms_norm", R"([{"T": 2, "H": 3}])");
  const OpCall call = draw_call(test_case, test_case.points.at(0));
  ASSERT_EQ(call.inputs.size(), 2u);
  // From an implementation of the generator of its own; the second row's range is twice the first's.
  const float x[] = {-0.6654789447784424f, 0.8328611850738525f, 0.37529242038726807f,
                     0.7343716621398926f,  1.9686939716339111f, -1.2765111923217773f};
  const float weight[] = {0.7017450928688049f, 0.9793288707733154f, 0.8888015747070312f};
  for (size_t i = 0; i < 6; ++i) EXPECT_EQ(call.required("x").values<float>()[i], x[i]) << i;
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(call.required("weight").values<float>()[i], weight[i]) << i;
}

TEST(Problems, EveryOpDrawsWhatItsContractSays) {
  for (const OpCase& test_case : read_op_cases(ASSAY_ROOT)) {
    if (test_case.tier == "slow") continue;  // tensors of more than 2^31 elements
    const OpSpec& spec = op_spec(test_case.op);
    for (const OpPoint& point : {test_case.points.front(), test_case.points.back()}) {
      const OpCall call = draw_call(test_case, point), again = draw_call(test_case, point);
      size_t given = 0;
      for (const OpTensor& input : spec.inputs) {
        if (!point.has_input(input)) continue;
        const HostTensor& value = call.required(input.name);
        EXPECT_EQ(value.dtype(), input.dtype) << test_case.id << " " << input.name;
        EXPECT_EQ(value.shape(), point.shape_of(input)) << test_case.id << " " << input.name;
        EXPECT_TRUE(std::ranges::equal(value.bytes(), again.required(input.name).bytes())) << test_case.id;
        if (input.name == "A") {
          for (const float a : value.values<float>()) EXPECT_LT(a, 0) << test_case.id;
        }
        ++given;
      }
      EXPECT_EQ(call.inputs.size(), given) << test_case.id;
    }
  }
}

TEST(Problems, EveryRowOfAMaskEndsInARealColumn) {
  const OpCase test_case =
      op_case("causal_conv1d", R"([{"B": 4, "L": [1, 3, 9], "C": 1, "K": 2}])", {{"inputs", {{"mask", {true}}}}});
  for (const OpPoint& point : test_case.points) {
    const OpCall call = draw_call(test_case, point);
    const auto mask = call.required("mask").values<uint8_t>();
    const auto length = static_cast<size_t>(point.sizes.at("L"));
    size_t zeros = 0;
    for (size_t row = 0; row < 4; ++row) {
      EXPECT_EQ(mask[row * length + length - 1], 1);
      for (size_t t = 1; t < length; ++t) EXPECT_LE(mask[row * length + t - 1], mask[row * length + t]);
      zeros += static_cast<size_t>(std::count(&mask[row * length], &mask[row * length] + length, 0));
    }
    EXPECT_EQ(zeros > 0, length > 1);
  }
}

TEST(Problems, ARangeOfTheCaseReplacesTheProblemsOwn) {
  const OpCase test_case = op_case("rms_norm", R"([{"T": 5, "H": 9}])", {{"ranges", {{"x", {5, 6}}}}});
  const OpCall call = draw_call(test_case, test_case.points.at(0));
  for (const float x : call.required("x").values<float>()) {
    EXPECT_GE(x, 5);
    EXPECT_LT(x, 6);
  }
}

TEST(RunOps, ARightOpPasses) {
  const Verdict verdict = run(conv_case());
  EXPECT_EQ(verdict.status, Status::kPass) << verdict.reason;
  EXPECT_EQ(verdict.case_id, "ops/causal_conv1d.one");
  EXPECT_EQ(verdict.model, "ops");
  EXPECT_EQ(verdict.aspect, "causal_conv1d");
  // L 1 in two forms, L 4 in one; two outputs each: 2 x (6 + 24) + 24 + 24 elements.
  EXPECT_EQ(verdict.probes, 6);
  EXPECT_EQ(verdict.elements, 108);
  EXPECT_LT(verdict.used, 0.5);
  EXPECT_EQ(verdict.kernels,
            (std::vector<std::string>{"causal_conv1d_sequence_f32@test", "causal_conv1d_update_f32@test"}));
}

TEST(RunOps, AWrongElementIsNamedWithShapeAndForm) {
  const Verdict verdict = run(conv_case(), {.wrong_at = 17});  // L 1 has 6 elements: [1, 1, 2] at L 4
  EXPECT_EQ(verdict.status, Status::kFail);
  ASSERT_TRUE(verdict.first);
  EXPECT_EQ(verdict.first->probe, "y");
  EXPECT_EQ(verdict.first->row, 1);
  EXPECT_EQ(verdict.first->index, (std::vector<int64_t>{1, 2}));
  EXPECT_NEAR(verdict.first->got - verdict.first->expected, 0.01, 1e-5);
  EXPECT_EQ(verdict.first->bad, 1);
  EXPECT_EQ(verdict.first->of, 24);
  EXPECT_EQ(verdict.leg, "B 2, L 4, C 3, K 4, with bias initial_state [sequence]");
  EXPECT_GT(verdict.used, 100);
}

TEST(RunOps, AFaultInOneFormIsFoundThere) {
  const Verdict verdict = run(conv_case(), {.wrong_at = 0, .wrong_form = "update"});
  EXPECT_EQ(verdict.status, Status::kFail);
  EXPECT_EQ(verdict.leg, "B 2, L 1, C 3, K 4, with bias initial_state [update]");
}

TEST(RunOps, WhatIsNotANumberOrNotThereFails) {
  Verdict verdict = run(conv_case(), {.wrong_at = 4, .writes_nan = true});
  EXPECT_EQ(verdict.status, Status::kFail);
  EXPECT_EQ(verdict.first->what, "not finite");
  EXPECT_EQ(verdict.first->row, 1);
  EXPECT_EQ(verdict.first->index, (std::vector<int64_t>{0, 1}));
  verdict = run(conv_case(), {.lacks_state = true});
  EXPECT_EQ(verdict.status, Status::kFail);
  EXPECT_EQ(verdict.first->probe, "final_state");
  EXPECT_NE(verdict.first->detail.find("no such output"), std::string::npos);
  EXPECT_EQ(run(conv_case(), {.is_zero = true}).status, Status::kFail);
}

TEST(RunOps, AnUpdateIsOneStepOnAState) {
  const OpSubject subject("subject");
  const auto forms = [&subject](const OpCase& test_case, size_t point) {
    return forms_for(test_case, test_case.points.at(point), subject.capabilities());
  };
  const std::vector<std::string> sequence{"sequence"}, both{"sequence", "update"};
  EXPECT_EQ(forms(conv_case(), 0), both);
  EXPECT_EQ(forms(conv_case(), 1), sequence);
  EXPECT_EQ(forms(conv_case({{"inputs", {{"bias", {true}}}}}), 0), sequence);
  EXPECT_EQ(forms(conv_case({{"forms", {"update"}}}), 0), std::vector<std::string>{"update"});
  EXPECT_TRUE(forms(conv_case({{"forms", {"update"}}}), 1).empty());
  EXPECT_EQ(forms(op_case("rms_norm", R"([{"T": 1, "H": 1}])"), 0), std::vector<std::string>{""});
}

TEST(RunOps, OtherCodeThanTheOpsOwnKernelIsFallback) {
  const Verdict verdict = run(conv_case(), {.names_no_kernel = true});
  EXPECT_EQ(verdict.status, Status::kFallback);
  EXPECT_NE(verdict.reason.find("causal_conv1d"), std::string::npos);
  EXPECT_EQ(run(conv_case(), {.names_no_kernel = true}, /*is_accelerated=*/false).status, Status::kPass);
}

TEST(RunOps, ZerosProveNothing) {
  OpSubject zeros("zeros", false, {.is_zero = true}), reference("reference", false, {.is_zero = true});
  const Verdict verdict = run_op_case(op_case("rms_norm", R"([{"T": 2, "H": 3}])"), zeros, reference);
  EXPECT_EQ(verdict.status, Status::kHollow) << verdict.reason;
  EXPECT_NE(verdict.reason.find("y is all zero"), std::string::npos);
}

TEST(RunOps, TheReferenceIsComparedInItsOtherFormsOnly) {
  OpSubject reference("reference");
  const Verdict verdict = run_op_case(conv_case(), reference, reference);
  EXPECT_EQ(verdict.status, Status::kPass) << verdict.reason;
  EXPECT_EQ(verdict.probes, 2);  // the update at L 1
  const Verdict single = run_op_case(op_case("rms_norm", R"([{"T": 2, "H": 3}])"), reference, reference);
  EXPECT_EQ(single.status, Status::kSkip);
  EXPECT_EQ(single.skip, SkipReason::kNoForm);
}

TEST(RunOps, WhatTheSubjectRefusesIsLeftOutAndShown) {
  const Verdict verdict = run(conv_case(), {.refuses_updates = true});
  EXPECT_EQ(verdict.status, Status::kPass);
  ASSERT_FALSE(verdict.notes.empty());
  EXPECT_NE(verdict.notes[0].find("left out: 1 calls"), std::string::npos) << verdict.notes[0];
  const Verdict none = run(op_case("embedding", R"([{"B": 1, "L": 1, "V": 2, "H": 1}])"));
  EXPECT_EQ(none.status, Status::kError);  // a subject that breaks on an op's inputs
  EXPECT_EQ(run(conv_case({{"forms", {"engine:chunked"}}})).skip, SkipReason::kNoForm);
}

TEST(RunOps, AFailingCallLeavesItsTensorsAsEvidence) {
  OpSubject subject("subject", true, {.wrong_at = 17}), reference("reference");
  Evidence evidence;
  const Verdict verdict = run_op_case(conv_case(), subject, reference, {}, &evidence);
  ASSERT_EQ(verdict.status, Status::kFail) << verdict.reason;
  std::map<std::string, HostTensor> tensors;
  for (const NamedTensor& tensor : evidence.tensors) tensors.emplace(tensor.name, tensor.value);
  for (const char* name : {"input.x", "input.weight", "expected.y", "got.y", "bound.y"})
    EXPECT_TRUE(tensors.contains(name)) << name;
  ASSERT_TRUE(verdict.first);
  EXPECT_EQ(tensors.at("bound." + verdict.first->probe).values<double>()[0], verdict.first->bound);
  EXPECT_NE(evidence.text.find(verdict.leg), std::string::npos) << evidence.text;

  OpSubject right("subject");
  Evidence none;
  run_op_case(conv_case(), right, reference, {}, &none);
  EXPECT_TRUE(none.tensors.empty());
}

}  // namespace
}  // namespace assay
