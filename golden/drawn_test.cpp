#include "golden/drawn.hpp"

#include <gtest/gtest.h>

#include "golden/life.hpp"

namespace assay::golden {
namespace {

const std::filesystem::path kRoot = ASSAY_ROOT;
constexpr const char* kWeight = "backbone.layers.1.mixer.A_log";

ModelConfig tiny() { return read_config(kRoot / "cases/models/mamba2/tiny.config.json"); }
// Committed, so its digests are those of the original that was recorded.
Golden committed() { return read_golden(golden_file(kRoot, "mamba2", "tiny", "one", "f32")); }

TEST(DrawnWeights, ACommittedGoldenIsOfTheWeightsAsTheyAreDrawn) {
  DrawnWeights drawn;
  EXPECT_EQ(drawn.stale_reason(committed(), tiny()), "");
  EXPECT_EQ(drawn.digests(tiny()).size(), committed().weight_digests.size());
}

TEST(DrawnWeights, AnotherDrawingOfTheSameConfigMakesItStale) {
  DrawnWeights drawn;
  Golden golden = committed();
  ASSERT_TRUE(golden.weight_digests.contains(kWeight));
  golden.weight_digests[kWeight] = "0123456789abcdef";
  EXPECT_EQ(stale_reason(golden, tiny()), "");
  EXPECT_EQ(drawn.stale_reason(golden, tiny()),
            "recorded from other weights (" + std::string(kWeight) + " is drawn anew)");

  // The seed alone is in the config's digest; here it stands for a change of the drawing that is not.
  ModelConfig other = tiny();
  other.weights.seed += 1;
  other.digest += "'";
  EXPECT_NE(drawn.stale_reason(committed(), other), "");
}

TEST(DrawnWeights, WeightsThatCameOrWentMakeItStale) {
  DrawnWeights drawn;
  Golden golden = committed();
  golden.weight_digests.erase(kWeight);
  EXPECT_EQ(drawn.stale_reason(golden, tiny()), "recorded without the weight " + std::string(kWeight));
  golden = committed();
  golden.weight_digests["backbone.extra"] = "0123456789abcdef";
  EXPECT_EQ(drawn.stale_reason(golden, tiny()),
            "recorded with the weight backbone.extra, which the config does not have");
}

TEST(DrawnWeights, WhatAKindChangesIsNotComparedAndWhatItKeepsIs) {
  DrawnWeights drawn;
  Golden golden = committed();
  golden.weight_digests[kWeight] = "0123456789abcdef";
  golden.kind = "bf16";
  EXPECT_EQ(drawn.stale_reason(golden, tiny()), "");
  golden.float32_weights = {kWeight};
  EXPECT_NE(drawn.stale_reason(golden, tiny()), "");
  golden.kind = "nf4";
  golden.quantization.emplace();
  EXPECT_NE(drawn.stale_reason(golden, tiny()), "");
  golden.quantization->weights[kWeight] = {};
  EXPECT_EQ(drawn.stale_reason(golden, tiny()), "");
}

TEST(DrawnWeights, LargeConfigsAndCheckpointsAreNotDrawn) {
  DrawnWeights drawn;
  Golden golden = committed();
  golden.weight_digests[kWeight] = "0123456789abcdef";
  ModelConfig checkpoint = tiny();
  checkpoint.weights.kind = WeightsRecipe::Kind::kCheckpoint;
  EXPECT_EQ(drawn.stale_reason(golden, checkpoint), "");
  ModelConfig large = tiny();
  large.digest += " large";
  large.fields["vocab_size"] = kMostDrawnElements / 24 + 1;
  EXPECT_EQ(drawn.stale_reason(golden, large), "");
}

}  // namespace
}  // namespace assay::golden
