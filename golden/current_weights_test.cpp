#include "golden/current_weights.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <utility>
#include <vector>

#include "cases/spec/error.hpp"
#include "cases/spec/export.hpp"
#include "cases/spec/json.hpp"
#include "cases/spec/scratch_folder.hpp"
#include "golden/life.hpp"

namespace assay::golden {
namespace {

namespace fs = std::filesystem;

const fs::path kRoot = ASSAY_ROOT;
constexpr const char* kWeight = "backbone.layers.1.mixer.A_log";
constexpr const char* kLinear = "backbone.layers.0.mixer.in_proj.weight";  // quantised by the original
constexpr const char* kAnother = "0123456789abcdef";

ModelConfig tiny() { return read_config(kRoot / "cases/models/mamba2/tiny.config.json"); }
// Committed, so its digests are those of the original that was recorded.
Golden committed(const std::string& input = "one", const std::string& kind = "f32") {
  return read_golden(golden_file(kRoot, "mamba2", "tiny", input, kind));
}
using Run = std::pair<const char*, const char*>;
constexpr Run kRuns[] = {{"one", "f32"}, {"half40", "f16"}, {"half40", "bf16"}, {"half12", "nf4"}, {"half40", "nf4dq"}};

std::string stale(const Golden& golden, const ModelConfig& config) {
  return CurrentWeights().stale_reason(golden, config);
}

TEST(CurrentWeights, ACommittedGoldenIsOfTheWeightsAsTheyAreDrawn) {
  for (const auto& [input, kind] : kRuns) EXPECT_EQ(stale(committed(input, kind), tiny()), "") << kind;
}

TEST(CurrentWeights, AnotherDrawingOfTheSameConfigMakesItStale) {
  Golden golden = committed();
  ASSERT_TRUE(golden.weight_digests.contains(kWeight));
  golden.weight_digests[kWeight] = kAnother;
  EXPECT_EQ(stale_reason(golden, tiny()), "");
  EXPECT_EQ(stale(golden, tiny()), "recorded from other weights (" + std::string(kWeight) + " is drawn anew)");

  // The seed alone is in the config's digest; here it stands for a change of the drawing that is not.
  ModelConfig other = tiny();
  other.weights.seed += 1;
  for (const auto& [input, kind] : kRuns) EXPECT_NE(stale(committed(input, kind), other), "") << kind;
}

TEST(CurrentWeights, WeightsThatCameOrWentMakeItStale) {
  Golden golden = committed();
  golden.weight_digests.erase(kWeight);
  EXPECT_EQ(stale(golden, tiny()), "recorded without the weight " + std::string(kWeight));
  golden = committed();
  golden.weight_digests["backbone.extra"] = kAnother;
  EXPECT_EQ(stale(golden, tiny()), "recorded with the weight backbone.extra, which the config does not have");
}

TEST(CurrentWeights, AWeightIsComparedInTheFormThatTheKindGivesIt) {
  Golden golden = committed("half40", "bf16");
  ASSERT_NE(golden.weight_digests.at(kLinear), committed().weight_digests.at(kLinear));
  golden.float32_weights.push_back(kLinear);  // then it should be as it is drawn, and is rounded
  EXPECT_NE(stale(golden, tiny()), "");

  golden = committed("half12", "nf4");
  golden.weight_digests[kLinear] = kAnother;  // of what the codes stand for: the scales are compared instead
  EXPECT_EQ(stale(golden, tiny()), "");
  golden.quantization->weights.at(kLinear).absmax.back() *= 2;
  EXPECT_NE(stale(golden, tiny()).find(kLinear), std::string::npos);

  golden = committed("half40", "nf4dq");
  golden.quantization->weights.at(kLinear).absmax_codes.back() ^= 1;
  EXPECT_EQ(stale(golden, tiny()), "");
  golden.weight_digests[kWeight] = kAnother;
  EXPECT_NE(stale(golden, tiny()), "");
}

TEST(CurrentWeights, LargeConfigsAreNotDrawn) {
  Golden golden = committed();
  golden.weight_digests[kWeight] = kAnother;
  ModelConfig large = tiny();
  large.fields["vocab_size"] = kMostDrawnElements / 24 + 1;
  EXPECT_EQ(stale(golden, large), "");
  EXPECT_NE(CurrentWeights().left_out(large).find("at most 200000"), std::string::npos);
  EXPECT_EQ(CurrentWeights().left_out(tiny()), "");
}

class StoredWeights : public ::testing::Test {
 protected:
  StoredWeights() {
    export_model(tiny(), folder_.path());
    config_.weights = {.kind = WeightsRecipe::Kind::kCheckpoint, .directory = folder_.path()};
  }
  // Writes bytes over the float32 tensor of the file, from the element on.
  void overwrite(const std::string& name, size_t element, const std::vector<float>& values) const {
    const fs::path file = folder_.path() / "model.safetensors";
    std::string bytes = read_file(file);
    uint64_t length = 0;
    std::memcpy(&length, bytes.data(), sizeof length);
    const auto header = nlohmann::json::parse(bytes.substr(8, length));
    const auto begin = header.at(name).at("data_offsets").at(0).get<size_t>();
    std::memcpy(bytes.data() + 8 + length + begin + 4 * element, values.data(), 4 * values.size());
    write_file(file, bytes);
  }

  ScratchFolder folder_;
  ModelConfig config_ = tiny();
};

TEST_F(StoredWeights, AGoldenIsOfTheCheckpointThatWasRecorded) {
  for (const auto& [input, kind] : kRuns) EXPECT_EQ(stale(committed(input, kind), config_), "") << kind;
  EXPECT_EQ(CurrentWeights(kMostListedElements).left_out(config_), "");
}

TEST_F(StoredWeights, AnOverwrittenOneMakesItStaleByTheFirstWeightThatDiffers) {
  overwrite("lm_head.weight", 0, {0});
  overwrite("backbone.embeddings.weight", 5, {123.0F, 0});
  for (const auto& [input, kind] : kRuns)
    EXPECT_EQ(
        stale(committed(input, kind), config_),
        "recorded from another checkpoint (backbone.embeddings.weight of '" + folder_.path().string() + "' differs)")
        << kind;
}

TEST_F(StoredWeights, AQuantisedWeightIsComparedByItsScales) {
  overwrite(kLinear, 64, std::vector<float>(64, 0));
  EXPECT_NE(stale(committed("half12", "nf4"), config_).find(kLinear), std::string::npos);
  EXPECT_EQ(stale(committed("half40", "nf4dq"), config_), "");
}

TEST_F(StoredWeights, AreReadOnceAConfig) {
  CurrentWeights weights;
  EXPECT_EQ(weights.stale_reason(committed(), config_), "");
  overwrite("backbone.embeddings.weight", 5, {123.0F});
  EXPECT_EQ(weights.stale_reason(committed("greedy5"), config_), "");
  EXPECT_NE(stale(committed("greedy5"), config_), "");
}

TEST_F(StoredWeights, WhatCannotBeReadIsAnErrorAndWhatIsNotThereIsNotLookedAt) {
  fs::resize_file(folder_.path() / "model.safetensors", 100);
  EXPECT_THROW(stale(committed(), config_), InputError);
  const CurrentWeights few(1000);
  EXPECT_NE(few.left_out(config_).find("at most 1000"), std::string::npos);
  EXPECT_EQ(CurrentWeights(1000).stale_reason(committed(), config_), "");
  config_.weights.directory = folder_.path() / "gone";
  EXPECT_NE(CurrentWeights().left_out(config_).find("gone"), std::string::npos);
  EXPECT_EQ(stale(committed(), config_), "");
}

}  // namespace
}  // namespace assay::golden
