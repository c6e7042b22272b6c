#include "golden/compose.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

#include "cases/spec/error.hpp"
#include "golden/life.hpp"

namespace assay::golden {
namespace {

class Tensors : public WeightSource {
 public:
  std::map<std::string, HostTensor> held;
  std::vector<std::string> names() const override { return {}; }
  bool has(const std::string& name) const override { return held.contains(name); }
  HostTensor read(const std::string& name) const override { return held.at(name); }
};

HostTensor wide(Shape shape, const std::vector<double>& values) {
  HostTensor tensor(DType::kF64, std::move(shape));
  std::copy(values.begin(), values.end(), tensor.values<double>().begin());
  return tensor;
}

// A model of one state with two heads, one probe and three logits; an input of one token and one greedy token.
struct Recording {
  ModelConfig config{.model = "mamba2", .name = "tiny", .digest = "aa"};
  std::vector<ProbeSpec> probes{{.name = "embed", .shape = {2}, .op = "embedding"},
                                {.name = "logits", .shape = {3}, .op = "linear"},
                                {.name = "layers.0.mixer.ssm_state",
                                 .shape = {2, 1, 2},
                                 .is_state = true,
                                 .op = "ssd",
                                 .layer = 0,
                                 .state_heads = 2}};
  Tensors tensors;
  nlohmann::json manifest, run;

  Recording() {
    config.weights.seed = 5;
    config.state_cuts = {2};
    config.inputs["pair"] = {"pair", {1}, 1};
    const std::string digest(64, 'b');
    manifest = {{"weights", {{"w", {{"shape", {1}}, {"sha256", digest}}}}}};
    run = {{"original", {{"package", "transformers"}, {"version", "5.24.0"}}},
           {"weights", {{"w", digest}}},
           {"inputs", {{"pair", {{"prompt", {1}}, {"tokens", {1, 2}}, {"cuts", {2}}}}}}};
    tensors.held["f32/embed"] = HostTensor({2, 2}, std::vector<float>{3, 4, 0, -1});
    tensors.held["f64/embed"] = wide({2, 2}, {3, 4.0009765625, 0, -1});
    tensors.held["f32/logits"] = HostTensor({2, 3}, std::vector<float>{1, 2.5, 2, -4, -1, -1});
    tensors.held["f64/logits"] = wide({2, 3}, {1, 2.5, 2, -4, -1, -1.25});
    tensors.held["state/2/f32/layers.0.mixer.ssm_state"] = HostTensor({2, 1, 2}, std::vector<float>{1, 2, 3, 4});
    tensors.held["state/2/f64/layers.0.mixer.ssm_state"] = wide({2, 1, 2}, {1, 2, 3.5, 4});
  }
  Golden golden() const { return compose(config, "pair", "f32", probes, tensors, run, manifest); }
};

TEST(RoundUp, KeepsTwoDigitsAndNeverFallsShort) {
  EXPECT_EQ(round_up(0), 0.f);
  EXPECT_EQ(round_up(1.201e-6), 1.3e-6f);
  EXPECT_EQ(round_up(1.2e-6), 1.2e-6f);
  EXPECT_EQ(round_up(9.91e-5), 1e-4f);
  EXPECT_EQ(round_up(4567), 4600.f);
  EXPECT_EQ(round_up(1), 1.f);
  EXPECT_GT(round_up(1e-60), 0.f);
}

TEST(ComposeRecord, TakesNormFloorAndScaleFromTheWholeRow) {
  const HostTensor narrow({1, 4}, std::vector<float>{3, 0, 4, 0});
  const Record record = compose_record("x", {4}, 1, {0}, {narrow, wide({1, 4}, {3, 0, 4.5, 0}), {}});
  EXPECT_EQ(record.values, std::vector<float>{3});
  EXPECT_EQ(record.norm, std::vector<float>{5});
  EXPECT_EQ(record.floor, std::vector<float>{0.5f});
  EXPECT_EQ(record.norm_floor, std::vector<float>{0.41f});  // sqrt(9 + 20.25) - 5 = 0.40833
  EXPECT_EQ(record.scale, 4.f);
}

TEST(ComposeRecord, TakesTheLargestDifferenceFromAnyRun) {
  const HostTensor narrow({2, 1}, std::vector<float>{1, 2});
  const std::vector<HostTensor> nudged = {HostTensor({2, 1}, std::vector<float>{1.5f, 2}),
                                          HostTensor({2, 1}, std::vector<float>{0.75f, 2.25f})};
  const Record record = compose_record("x", {1}, 2, {}, {narrow, wide({2, 1}, {1, 2.125}), nudged});
  EXPECT_EQ(record.values, (std::vector<float>{1, 2}));
  EXPECT_EQ(record.floor, (std::vector<float>{0.5f, 0.25f}));
  EXPECT_EQ(record.norm_floor, (std::vector<float>{0.5f, 0.25f}));
}

TEST(ComposeRecord, RefusesAChoiceThatRoundingDecides) {
  const HostTensor narrow({1, 3}, std::vector<float>{0.6f, 0, 0.4f});
  const HostTensor same = wide({1, 3}, {0.6, 0, 0.4});
  EXPECT_NO_THROW(compose_record("routing", {3}, 1, {}, {narrow, same, {narrow}}, true));
  const HostTensor flipped({1, 3}, std::vector<float>{0.6f, 0.4f, 0});
  EXPECT_THROW(compose_record("routing", {3}, 1, {}, {narrow, same, {flipped}}, true), HarnessError);
}

TEST(ComposeRecord, RefusesWhatIsNotFinite) {
  const HostTensor narrow({1, 2}, std::vector<float>{1, std::numeric_limits<float>::quiet_NaN()});
  EXPECT_THROW(compose_record("x", {2}, 1, {}, {narrow, wide({1, 2}, {1, 2}), {}}), HarnessError);
}

TEST(Compose, MakesAGoldenThatReadsBack) {
  const Golden golden = Recording().golden();
  EXPECT_EQ(golden.id(), "mamba2/tiny.pair.f32");
  EXPECT_EQ(golden.tokens, (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(golden.weight_digests.at("w"), std::string(16, 'b'));
  EXPECT_EQ(golden.gap, (std::vector<float>{0.5f, 0}));
  ASSERT_EQ(golden.probes.size(), 2u);
  EXPECT_EQ(golden.probes[0].floor, (std::vector<float>{9.8e-4f, 0}));
  EXPECT_EQ(golden.probes[1].floor, (std::vector<float>{0, 0.25f}));
  const std::string text = format(golden);
  EXPECT_EQ(format(parse_golden(nlohmann::json::parse(text), "g.json")), text);
}

TEST(Compose, KeepsAStateHeadByHead) {
  const Golden golden = Recording().golden();
  ASSERT_EQ(golden.states.size(), 1u);
  EXPECT_EQ(golden.states[0].cut, 2);
  const Record& state = golden.states[0].states[0];
  EXPECT_EQ(state.positions, 2);
  EXPECT_EQ(state.shape, (Shape{1, 2}));
  EXPECT_EQ(state.values, (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(state.norm, (std::vector<float>{std::sqrt(5.f), 5}));
  EXPECT_EQ(state.floor, (std::vector<float>{0, 0.5f}));
}

TEST(Compose, LogitsOnlyKeepsTheLogitsAndTheStatesAtTheEnd) {
  Recording recording;
  recording.config.state_cuts = {1};
  recording.config.inputs["pair"].is_logits_only = true;
  recording.config.inputs["pair"].has_end_states_only = true;
  recording.tensors.held.erase("f32/embed");
  const Golden golden = recording.golden();
  ASSERT_EQ(golden.probes.size(), 1u);
  EXPECT_EQ(golden.probes[0].name, "logits");
  EXPECT_EQ(golden.gap.size(), 2u);
  ASSERT_EQ(golden.states.size(), 1u);
  EXPECT_EQ(golden.states[0].cut, 2);
  const std::string text = format(golden);
  EXPECT_EQ(format(parse_golden(nlohmann::json::parse(text), "g.json")), text);
}

TEST(Compose, LogitsOnlySamplesLogitsThatWouldBeKeptWhole) {
  Recording recording;
  recording.probes[1].shape = {40};
  recording.tensors.held["f32/logits"] = HostTensor(DType::kF32, {2, 40});
  recording.tensors.held["f64/logits"] = HostTensor(DType::kF64, {2, 40});
  EXPECT_TRUE(recording.golden().probes[1].sample.empty());
  recording.config.inputs["pair"].is_logits_only = true;
  recording.config.inputs["pair"].has_end_states_only = true;
  EXPECT_EQ(recording.golden().probes[0].sample.size(), 16u);
}

TEST(Compose, StatesThatGrowAreNotRecordedAndSparseProbesAreMarked) {
  Recording recording;
  recording.probes.push_back({.name = "layers.1.attn.k_cache", .shape = {1, 2}, .is_state = true, .follows = "embed"});
  recording.probes[0].is_sparse = true;
  const Golden golden = recording.golden();
  EXPECT_EQ(golden.states[0].states.size(), 1u);
  EXPECT_TRUE(golden.probes[0].is_sparse);
  const std::string text = format(golden);
  EXPECT_TRUE(parse_golden(nlohmann::json::parse(text), "g.json").probes[0].is_sparse);
}

TEST(Compose, AnInputThatWantsSomethingElseRecordedMakesItStale) {
  Recording recording;
  const Golden golden = recording.golden();
  EXPECT_EQ(stale_reason(golden, recording.config), "");
  ModelConfig other = recording.config;
  other.inputs["pair"].is_logits_only = true;
  other.inputs["pair"].has_end_states_only = true;
  EXPECT_EQ(stale_reason(golden, other), "recorded with another set of probes");
  other = recording.config;
  other.inputs["pair"].beams = Input::Beams{2, 1};
  EXPECT_EQ(stale_reason(golden, other), "recorded with another beam search");
}

TEST(Compose, RefusesOtherCutsOrBeams) {
  Recording cuts;
  cuts.config.state_cuts = {1, 2};
  EXPECT_THROW(cuts.golden(), HarnessError);
  Recording beams;
  beams.config.inputs["pair"].beams = Input::Beams{2, 1};
  EXPECT_THROW(beams.golden(), HarnessError);
}

TEST(Compose, RefusesOtherWeights) {
  Recording run;
  run.run["weights"]["w"] = std::string(64, 'c');
  EXPECT_THROW(run.golden(), HarnessError);
  run.run["weights"]["w"] = std::string(64, 'b');
  run.run["weights"]["random_head"] = std::string(64, 'b');
  EXPECT_THROW(run.golden(), HarnessError);
  run.run["weights"] = nlohmann::json::object();
  EXPECT_THROW(run.golden(), HarnessError);
}

TEST(Compose, RefusesOtherTokensAndMissingOrMisshapenTensors) {
  Recording tokens;
  tokens.run["inputs"]["pair"]["tokens"] = {2, 1};
  EXPECT_THROW(tokens.golden(), HarnessError);
  Recording missing;
  missing.tensors.held.erase("f64/embed");
  EXPECT_THROW(missing.golden(), HarnessError);
  Recording narrow;
  narrow.tensors.held["f64/embed"] = HostTensor({2, 2}, std::vector<float>{3, 4, 0, -1});
  EXPECT_THROW(narrow.golden(), HarnessError);
}

}  // namespace
}  // namespace assay::golden
