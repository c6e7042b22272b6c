#include "golden/compose.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

#include "cases/spec/error.hpp"

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

TEST(RoundUp, KeepsThreeDigitsAndNeverFallsShort) {
  EXPECT_EQ(round_up(0), 0.f);
  EXPECT_EQ(round_up(1.2301e-6), 1.24e-6f);
  EXPECT_EQ(round_up(1.23e-6), 1.23e-6f);
  EXPECT_EQ(round_up(9.9999e-5), 1e-4f);
  EXPECT_EQ(round_up(4567), 4570.f);
  EXPECT_EQ(round_up(1), 1.f);
  EXPECT_GT(round_up(1e-60), 0.f);
}

TEST(ComposeRecord, TakesNormFloorAndScaleFromTheWholeRow) {
  const HostTensor narrow({1, 4}, std::vector<float>{3, 0, 4, 0});
  const Record record = compose_record("x", {4}, 1, {0}, narrow, wide({1, 4}, {3, 0, 4.5, 0}));
  EXPECT_EQ(record.values, std::vector<float>{3});
  EXPECT_EQ(record.norm, std::vector<float>{5});
  EXPECT_EQ(record.floor, std::vector<float>{0.5f});
  EXPECT_EQ(record.norm_floor, std::vector<float>{0.409f});  // sqrt(9 + 20.25) - 5 = 0.40833
  EXPECT_EQ(record.scale, 4.f);
}

TEST(ComposeRecord, RefusesWhatIsNotFinite) {
  const HostTensor narrow({1, 2}, std::vector<float>{1, std::numeric_limits<float>::quiet_NaN()});
  EXPECT_THROW(compose_record("x", {2}, 1, {}, narrow, wide({1, 2}, {1, 2})), HarnessError);
}

TEST(Compose, MakesAGoldenThatReadsBack) {
  const Golden golden = Recording().golden();
  EXPECT_EQ(golden.id(), "mamba2/tiny.pair.f32");
  EXPECT_EQ(golden.tokens, (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(golden.weight_digests.at("w"), std::string(16, 'b'));
  EXPECT_EQ(golden.gap, (std::vector<float>{0.5f, 0}));
  ASSERT_EQ(golden.probes.size(), 2u);
  EXPECT_EQ(golden.probes[0].floor, (std::vector<float>{9.77e-4f, 0}));
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
