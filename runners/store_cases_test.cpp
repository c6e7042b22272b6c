// Static caches and offloaded weights: an honest subject passes, and each fault in keeping them is found and named.
#include <gtest/gtest.h>

#include <cstdlib>

#include "cases/spec/json.hpp"
#include "runners/execute.hpp"
#include "runners/testing/store_subject.hpp"

namespace assay {
namespace {

using testing::HouseFault;

constexpr const char* kStatic = R"([
  {"name": "dynamic", "rows": [{"input": "a"}], "cache": "dynamic", "calls": [4, "each"]},
  {"name": "static", "rows": [{"input": "a"}], "cache": "static", "calls": [4, "each"], "limit": 12}])";
constexpr const char* kSecond = R"([
  {"name": "dynamic", "rows": [{"input": "a", "length": 6}], "cache": "dynamic", "calls": [4, "each"]},
  {"name": "static", "rows": [{"input": "a", "length": 6}], "cache": "static", "calls": [4, "each"],
   "before": {"input": "b", "session": "same"}}])";
constexpr const char* kOffloaded = R"([
  {"name": "dynamic", "rows": [{"input": "a"}], "cache": "dynamic", "calls": [4, "each"]},
  {"name": "static", "rows": [{"input": "a"}], "cache": "dynamic", "calls": [4, "each"], "residency": "offloaded",
   "before": {"input": "b", "session": "new"}}])";

class StoreCases : public ::testing::Test {
 protected:
  StoreCases() {
    unsetenv("ASSAY_TINY_FAULT");
    goldens.put(testing::recorded(testing::tiny_subject(), config, "a"));
  }
  ~StoreCases() override { unsetenv("ASSAY_TINY_FAULT"); }

  Verdict run(const std::string& legs, HouseFault fault) {
    nlohmann::json document = {{"schema", "assay.case/1"},
                               {"config", "small"},
                               {"tier", "smoke"},
                               {"dtype", "float32"},
                               {"why", "For tests of the runner."},
                               {"legs", nlohmann::json::parse(legs)},
                               {"agree_exactly", nlohmann::json::parse(R"([["dynamic", "static"]])")}};
    const Case test_case = parse_case(document, "cases/models/mamba/static_cache.test.json", "mamba/static_cache.test");
    testing::StoreSubject subject(fault);
    return Execution(subject, goldens).run(test_case, config);
  }

  void expect_fallback(const std::string& legs, HouseFault fault, const std::string& part) {
    const Verdict v = run(legs, fault);
    EXPECT_EQ(v.status, Status::kFallback) << v.reason;
    EXPECT_NE(v.reason.find(part), std::string::npos) << v.reason;
    EXPECT_NE(v.reason.find("leg static"), std::string::npos) << v.reason;
  }

  golden::Finding finding(const std::string& legs, HouseFault fault) {
    const Verdict v = run(legs, fault);
    EXPECT_EQ(v.status, Status::kFail) << v.reason;
    return v.first.value_or(golden::Finding{});
  }

  ModelConfig config = testing::small_config();
  GoldenStore goldens{"nowhere"};
};

TEST_F(StoreCases, AnHonestSubjectPasses) {
  for (const char* legs : {kStatic, kSecond, kOffloaded}) {
    const Verdict v = run(legs, HouseFault::kNone);
    EXPECT_EQ(v.status, Status::kPass) << v.reason;
    EXPECT_GT(v.elements, 0);
  }
}

TEST_F(StoreCases, WhatIsReadBetweenCasesIsNotCounted) {
  const Case test_case =
      testing::small_case(R"([{"name": "o", "rows": [{"input": "a"}], "cache": "dynamic", "residency": "offloaded"}])");
  testing::StoreSubject subject(HouseFault::kNone);
  Execution execution(subject, goldens);
  // The first run looks for hollow answers with calls of its own on the model that the second one finds loaded.
  for (int i = 0; i < 2; ++i) EXPECT_EQ(execution.run(test_case, config).status, Status::kPass) << i;
}

TEST_F(StoreCases, AStaticCacheThatMovesIsNone) {
  expect_fallback(kStatic, HouseFault::kMoves, "layers.0.mixer.ssm_state moved");
  expect_fallback(kStatic, HouseFault::kAllocates, "4 allocations of caches and states after the first call, 8 later");
  expect_fallback(kStatic, HouseFault::kNamesNothing, "no address of layers.0.mixer.conv_state");
  expect_fallback(kSecond, HouseFault::kMoves, "layers.0.mixer.ssm_state moved");
}

TEST_F(StoreCases, TheFirstRequestsStateIsFound) {
  setenv("ASSAY_TINY_FAULT", "stale", 1);
  const golden::Finding first = finding(kSecond, HouseFault::kNone);
  EXPECT_EQ(first.probe, "layers.0.mixer.scan");
  EXPECT_EQ(first.step, 0);
}

TEST_F(StoreCases, OneBitIsEnough) {
  // Within every bound of the golden: only the comparison of the legs can see it.
  golden::Finding first = finding(kStatic, HouseFault::kFlipsABit);
  EXPECT_EQ(first.probe, "layers.1.mixer.ssm_state");
  EXPECT_EQ(first.what, "bits");
  EXPECT_EQ(first.layer, 1);
  EXPECT_EQ(first.row, 0);
  EXPECT_EQ(first.index, (std::vector<int64_t>{1, 1}));  // element 4 of [24, 3]
  EXPECT_NE(first.expected, first.got);
  EXPECT_EQ(first.bad, 1);
}

TEST_F(StoreCases, ReadsAreCounted) {
  golden::Finding first = finding(kOffloaded, HouseFault::kReadsTwice);
  EXPECT_EQ(first.probe, "weights.backbone.layers.1.norm.weight");
  EXPECT_EQ(first.what, "read twice");
  EXPECT_GT(first.got, 1);
  first = finding(kOffloaded, HouseFault::kReadsLate);
  EXPECT_EQ(first.probe, "weights.backbone.layers.1.norm.weight");
  EXPECT_EQ(first.what, "not read");
}

TEST_F(StoreCases, WhatStaysResidentIsCounted) {
  const auto bytes_of = [this](const std::string& name) {
    for (const WeightGroup& group : weight_groups(config))
      if (group.name == name) return 4.0 * static_cast<double>(group.elements);
    return 0.0;
  };
  // Layers of 12 x 48 + 24 x 4 + 24 + 24 x 8 + 2 x 24 + 24 + 24 x 3 + 24 + 24 x 12 + 12 elements.
  const double allowed = 2 * 4 * (12 * 48 + 24 * 4 + 24 + 24 * 8 + 2 * 24 + 24 + 24 * 3 + 24 + 24 * 12 + 12);
  EXPECT_EQ(bytes_of("layers.0") + bytes_of("layers.1"), allowed);
  for (const HouseFault fault : {HouseFault::kKeepsAll, HouseFault::kSaysAll}) {
    const golden::Finding first = finding(kOffloaded, fault);
    EXPECT_EQ(first.probe, "weights");
    EXPECT_EQ(first.what, "kept");
    EXPECT_EQ(first.expected, allowed);
    EXPECT_EQ(first.got, allowed + 4 * (24 * 12 + 12));  // the embedding and the final norm too
    EXPECT_NE(first.detail.find(std::to_string(static_cast<int>(allowed))), std::string::npos) << first.detail;
  }
  EXPECT_EQ(finding(kOffloaded, HouseFault::kSaysNothing).what, "kept");
}

TEST_F(StoreCases, WhatTheSubjectLacksIsSkipped) {
  const Case test_case =
      testing::small_case(R"([{"name": "o", "rows": [{"input": "a"}], "cache": "dynamic", "residency": "offloaded"}])");
  const Verdict v = Execution(testing::tiny_subject(), goldens).run(test_case, config);
  EXPECT_EQ(v.status, Status::kSkip);
  EXPECT_EQ(v.skip, SkipReason::kNoCapability);
  EXPECT_NE(v.reason.find("leg 'o'"), std::string::npos) << v.reason;
}

}  // namespace
}  // namespace assay
