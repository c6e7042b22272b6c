#include "runners/bench/model_row.hpp"

#include <gtest/gtest.h>

#include "cases/spec/error.hpp"
#include "cases/spec/json.hpp"
#include "cases/spec/weights.hpp"
#include "runners/testing/fixture.hpp"

namespace assay::bench {
namespace {

constexpr ModelCall kStep{"step", 2, 4, 1};
constexpr ModelCall kPrompt{"prompt", 2, 0, 6};

Table table() {
  Table result;
  result.copy_tbps = 2;
  result.float32_tflops = 50;
  return result;
}

ModelMeasured measured(const ModelCall& call, const Capabilities& capabilities, int repetitions = 4) {
  static const ModelConfig config = testing::small_config();
  static const auto model = testing::tiny_subject().load(config, open_weights(config), {});
  return measure(call, config, *model, capabilities, table(), repetitions);
}

TEST(ModelRow, StepsAndPromptsAreTimedEachByItself) {
  Capabilities can = testing::tiny_subject().capabilities();
  can.is_accelerated = true;
  for (const ModelCall* call : {&kStep, &kPrompt}) {
    const ModelMeasured row = measured(*call, can);
    EXPECT_EQ(row.problem, "");
    EXPECT_EQ(row.times_ms.size(), 4U);
    EXPECT_GT(row.p10_ms, 0);
    EXPECT_LE(row.p10_ms, row.median_ms);
    EXPECT_NEAR(row.tokens_per_s() * row.median_ms, 1e3 * 2 * static_cast<double>(call->columns), 1e-6);
    EXPECT_NEAR(row.roof_ms, std::max(row.cost.bytes() / 2, row.cost.flops / 50) * 1e-9, 1e-15);
    check_schema(to_json(row, {true, "2 cases"}, can), "bench_model.schema.json", "row");
  }
}

struct FullModel : Model {
  std::unique_ptr<Session> start(const SessionOptions& options) override {
    throw MemoryError("caches", std::to_string(options.limit) + " columns");
  }
  HostTensor weight(const std::string&) const override { return {}; }
};

TEST(ModelRow, WhatTheSubjectRefusesIsTheRowsProblem) {
  Capabilities more;
  more.caches = {CacheKind::kDynamic, CacheKind::kStatic};
  FullModel model;
  const ModelMeasured row = measure(kStep, testing::small_config(), model, more, table(), 4);
  EXPECT_NE(row.problem.find("13 columns"), std::string::npos) << "of the past, to warm up, timed: " << row.problem;
  EXPECT_NE(line(row).find("FAIL  " + row.problem), std::string::npos) << line(row);
  const nlohmann::json document = to_json(row, {true, "2 cases"}, more);
  check_schema(document, "bench_model.schema.json", "row");
  EXPECT_TRUE(document.at("median_ms").is_null());
  EXPECT_EQ(document.at("gate_text"), row.problem);
}

TEST(ModelRow, ASubjectOnTheHostHasNoRoof) {
  const Capabilities& can = testing::tiny_subject().capabilities();
  ASSERT_FALSE(can.is_accelerated);
  const nlohmann::json document = to_json(measured(kStep, can), {true, "2 cases"}, can);
  check_schema(document, "bench_model.schema.json", "row");
  EXPECT_TRUE(document.at("roof_ms").is_null() && document.at("roof_fraction").is_null()) << document;
}

TEST(ModelRow, ACaseThatFailsLeavesNoGate) {
  testing::Folder folder;
  testing::write_checkout(folder.path());
  const Corpus corpus = read_corpus(folder.path());
  const ModelConfig config = testing::small_config();
  GoldenStore goldens(folder.path());
  const ModelGate right = gate(corpus, config, testing::tiny_subject(), goldens);
  EXPECT_TRUE(right.passed) << right.text;
  EXPECT_EQ(right.text, "4 cases");

  GoldenStore none(folder.path() / "nowhere");
  const ModelGate wrong = gate(corpus, config, testing::tiny_subject(), none);
  EXPECT_FALSE(wrong.passed);
  EXPECT_NE(wrong.text.find("is NO_GOLDEN"), std::string::npos) << wrong.text;
  ModelConfig unknown = config;
  unknown.name = "other";
  EXPECT_FALSE(gate(corpus, unknown, testing::tiny_subject(), goldens).passed);
}

TEST(ModelRow, NamesOfFamiliesAreModelsTheRestAreKernels) {
  std::vector<std::string> rest;
  EXPECT_EQ(named_models({"ssd", "mamba2", "model:zamba*", "mamba2"}, rest),
            (std::vector<std::string>{"mamba2", "zamba", "zamba2"}));
  EXPECT_EQ(rest, std::vector<std::string>{"ssd"});
  EXPECT_THROW(named_models({"model:mambo"}, rest), InputError);
}

}  // namespace
}  // namespace assay::bench
