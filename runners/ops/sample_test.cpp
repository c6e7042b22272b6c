#include "runners/ops/sample.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "cases/spec/error.hpp"
#include "runners/ops/problems.hpp"
#include "runners/ops/run_ops.hpp"
#include "runners/testing/op_subject.hpp"

namespace assay {
namespace {

using Json = nlohmann::json;
using testing::OpFaults;
using testing::OpSubject;

OpCase sampled_case(const std::string& op, const char* shape, std::vector<std::string> sample) {
  const Json text = {{"schema", "assay.op_case/1"},
                     {"tier", "slow"},
                     {"why", "a sentence that says which fault it exposes"},
                     {"seed", 7},
                     {"shapes", Json::array({Json::parse(shape)})},
                     {"sample", sample}};
  return parse_op_case(text, "case.json", op, "one");
}

// 20 rows of 7, of which rows 0, 1, 10, 18 and 19 are compared.
OpCase norm_case() { return sampled_case("rms_norm", R"({"T": 20, "H": 7})", {"T"}); }

// rms_norm whose offsets wrap, as those of a narrow integer do: element i is read, or written, at i modulo `limit`.
class WrappingNorm : public OpSubject {
 public:
  WrappingNorm(int64_t limit, bool wraps_reads) : OpSubject("wraps"), limit_(limit), wraps_reads_(wraps_reads) {}

  OpResult run_op(const OpCall& call) override {
    OpCall shifted = call;
    if (wraps_reads_) {
      const auto from = call.required("x").values<float>();
      const auto to = shifted.inputs.at(0).value.values<float>();
      for (size_t i = 0; i < to.size(); ++i) to[i] = from[i % static_cast<size_t>(limit_)];
    }
    OpResult result = OpSubject::run_op(shifted);
    if (!wraps_reads_) {
      const OpResult right = result;
      const auto from = right.outputs.at(0).value.values<float>();
      const auto to = result.outputs.at(0).value.values<float>();
      std::fill(to.begin(), to.end(), 0.0f);  // not NaN: what is never written is found by its value alone
      for (size_t i = 0; i < from.size(); ++i) to[i % static_cast<size_t>(limit_)] = from[i];
    }
    return result;
  }

 private:
  int64_t limit_;
  bool wraps_reads_;
};

TEST(Sample, TakesTheEndsAndBothSidesOfEachMark) {
  const OpCase norm = norm_case();
  EXPECT_EQ(entries_at_ends(op_spec("rms_norm"), norm.points.at(0), {"T"}, {64}),
            (Entries{{"T", {0, 1, 9, 10, 18, 19}}}));  // elements 63 and 64 lie in row 9
  EXPECT_EQ(entries_at_ends(op_spec("rms_norm"), norm.points.at(0), {"T"}, {70, 140}),
            (Entries{{"T", {0, 1, 9, 10, 18, 19}}}));  // 69 and 70 in rows 9 and 10; there is no 140
  // x and y [2, 3, 5]: element 17 has channel 2, 18 channel 3; the states [2, 5, 2] have 17 and 18 in 3 and 4.
  const OpCase conv = sampled_case("causal_conv1d", R"({"B": 2, "L": 3, "C": 5, "K": 2})", {"C"});
  EXPECT_EQ(entries_at_ends(op_spec("causal_conv1d"), conv.points.at(0), {"C"}, {18}),
            (Entries{{"C", {0, 1, 2, 3, 4}}}));
  EXPECT_TRUE(entries_at_ends(op_spec("rms_norm"), norm.points.at(0), {}).empty());
}

TEST(Sample, CutsAnyDimension) {
  const OpCase conv = sampled_case("causal_conv1d", R"({"B": 2, "L": 2, "C": 4, "K": 1})", {"C"});
  const OpSpec& spec = op_spec("causal_conv1d");
  const Sample sample(spec, conv.points.at(0), {{"B", {1}}, {"C", {0, 2}}});
  HostTensor x(DType::kF32, {2, 2, 4});
  for (size_t i = 0; i < 16; ++i) x.values<float>()[i] = static_cast<float>(i);
  const HostTensor cut = sample.cut(x, *spec.input("x"));
  EXPECT_EQ(cut.shape(), (Shape{1, 2, 2}));
  const std::vector<float> expected{8, 10, 12, 14};
  EXPECT_TRUE(std::ranges::equal(cut.values<float>(), expected));
  golden::Finding finding;
  finding.probe = "y";
  finding.index = {1, 1};
  const golden::Finding found = sample.in_whole(finding);
  EXPECT_EQ(found.row, 1);
  EXPECT_EQ(found.index, (std::vector<int64_t>{1, 2}));
}

TEST(Sample, DrawsAndRenumbersEntriesOfTheSample) {
  const OpCase test_case = sampled_case("embedding", R"({"B": 1, "L": 9, "V": 1000, "H": 2})", {"V"});
  const OpSpec& spec = op_spec("embedding");
  const OpCall call = draw_call(test_case, test_case.points.at(0));
  const std::vector<int64_t> entries{0, 1, 500, 998, 999};
  const Sample sample(spec, test_case.points.at(0), {{"V", entries}});
  const OpCall part = sample.cut(call);
  EXPECT_EQ(part.required("weight").shape(), (Shape{5, 2}));
  for (size_t i = 0; i < 9; ++i) {
    const int64_t id = call.required("ids").values<int64_t>()[i], in_part = part.required("ids").values<int64_t>()[i];
    EXPECT_EQ(entries.at(static_cast<size_t>(in_part)), id);
    EXPECT_EQ(part.required("weight").at(2 * in_part + 1), call.required("weight").at(2 * id + 1));
  }
  EXPECT_EQ(call.required("ids").values<int64_t>().front(), 999);
  EXPECT_THROW(Sample(spec, test_case.points.at(0), {{"V", {0, 1}}}).cut(call), InputError);
}

TEST(Sample, TheReferenceComputesThePartOnly) {
  OpSubject subject("subject"), reference("reference");
  const Verdict verdict = run_op_case(norm_case(), subject, reference);
  EXPECT_EQ(verdict.status, Status::kPass) << verdict.reason;
  EXPECT_EQ(verdict.elements, 35);
  ASSERT_EQ(reference.calls.size(), 2u);
  EXPECT_EQ(reference.calls[0].required("x").shape(), (Shape{5, 7}));
  EXPECT_EQ(subject.calls.at(0).required("x").shape(), (Shape{20, 7}));
  EXPECT_EQ(run_op_case(norm_case(), reference, reference).skip, SkipReason::kNoForm);
}

TEST(Sample, OffsetsThatWrapAreFound) {
  for (const bool wraps_reads : {true, false}) {
    // Wherever they wrap, the last row lies behind it.
    for (const int64_t limit : {7 * 19 + 1, 7 * 15 + 3, 64, 8}) {
      WrappingNorm subject(limit, wraps_reads);
      OpSubject reference("reference");
      const Verdict verdict = run_op_case(norm_case(), subject, reference);
      EXPECT_EQ(verdict.status, Status::kFail) << limit << " " << wraps_reads;
      ASSERT_TRUE(verdict.first);
      EXPECT_EQ(verdict.first->probe, "y");
    }
    WrappingNorm wide(140, wraps_reads);
    OpSubject reference("reference");
    EXPECT_EQ(run_op_case(norm_case(), wide, reference).status, Status::kPass);
  }
}

TEST(Sample, AFindingIsNamedInTheWhole) {
  OpSubject wrong("subject", false, {.wrong_at = 18 * 7 + 2}), reference("reference");
  const Verdict verdict = run_op_case(norm_case(), wrong, reference);
  ASSERT_TRUE(verdict.first);
  EXPECT_EQ(verdict.first->row, 18);
  EXPECT_EQ(verdict.first->index, std::vector<int64_t>{2});
}

TEST(Sample, WhatIsNotFiniteIsFoundOutsideTheSample) {
  OpSubject wrong("subject", false, {.wrong_at = 5 * 7 + 3, .writes_nan = true}), reference("reference");
  const Verdict verdict = run_op_case(norm_case(), wrong, reference);
  EXPECT_EQ(verdict.status, Status::kFail);
  ASSERT_TRUE(verdict.first);
  EXPECT_EQ(verdict.first->what, "not finite");
  EXPECT_EQ(verdict.first->row, 5);
  EXPECT_EQ(verdict.first->index, std::vector<int64_t>{3});
}

TEST(Sample, EveryLargeCaseOfTheRepositoryCanBeCut) {
  int64_t found = 0;
  for (const OpCase& test_case : read_op_cases(ASSAY_ROOT)) {
    if (test_case.tier != "slow") continue;
    EXPECT_FALSE(test_case.sample.empty()) << test_case.id;
    const OpSpec& spec = op_spec(test_case.op);
    for (const OpPoint& point : test_case.points) {
      const Sample sample(spec, point, entries_at_ends(spec, point, test_case.sample));
      int64_t most = 0, most_of_part = 0, bytes = 0;
      for (const auto* tensors : {&spec.inputs, &spec.outputs})
        for (const OpTensor& tensor : *tensors) {
          if (!point.has_input(tensor)) continue;
          const int64_t count = element_count(point.shape_of(tensor));
          most = std::max(most, count);
          most_of_part = std::max(most_of_part, element_count(sample.part().shape_of(tensor)));
          bytes += count * static_cast<int64_t>(size_of(tensor.dtype));
        }
      EXPECT_GE(most, int64_t{1} << 29) << test_case.id << " " << point.text(spec);
      EXPECT_LE(most_of_part, int64_t{1} << 27) << test_case.id << " " << point.text(spec);
      EXPECT_LE(bytes, int64_t{11} << 30) << test_case.id << " " << point.text(spec);
      ++found;
    }
  }
  EXPECT_GE(found, 20);
}

}  // namespace
}  // namespace assay
