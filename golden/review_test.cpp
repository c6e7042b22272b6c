#include "golden/review.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace assay::golden {
namespace {

// Three positions of two logits, floors 1e-3 (the first by luck 1e-6), one state after two tokens.
Golden sample() {
  Golden golden{.model = "mamba", .config = "tiny", .input = "three", .kind = "f32"};
  golden.config_digest = "c";
  golden.weight_digests = {{"w", "0123"}};
  golden.original = {{"package", "transformers"}, {"version", "5.24.0"}};
  golden.prompt = {4};
  golden.tokens = {4, 5, 6};
  golden.gap = {1, 1, 1};
  golden.probes = {{.name = "logits",
                    .shape = {2},
                    .positions = 3,
                    .values = {1, 2, 3, 4, 5, 6},
                    .norm = {2.236f, 5, 7.81f},
                    .floor = {1e-6f, 1e-3f, 1e-3f},
                    .norm_floor = {1e-6f, 1e-3f, 1e-3f},
                    .scale = 6}};
  golden.states = {{2,
                    {{.name = "layers.0.mixer.conv_state",
                      .shape = {2},
                      .positions = 1,
                      .values = {0, 1},
                      .norm = {1},
                      .floor = {1e-3f},
                      .norm_floor = {1e-3f},
                      .scale = 1}}}};
  return golden;
}

TEST(Classify, EqualNumberForNumberIsSame) {
  const Change change = classify(sample(), sample());
  EXPECT_EQ(change.kind, Class::kSame);
  EXPECT_EQ(change.worst_floors, 0);
  EXPECT_EQ(change.note, "");
}

TEST(Classify, CountsInFloorsAndNoLessThanTheMedianFloor) {
  Golden candidate = sample();
  candidate.probes[0].values[0] += 4e-3f;  // 4000 of its own lucky floor, 4 of the median
  const Change change = classify(sample(), candidate);
  EXPECT_EQ(change.kind, Class::kNoise);
  EXPECT_EQ(change.worst_probe, "logits");
  EXPECT_NEAR(change.worst_floors, 4, 0.01);
  EXPECT_NEAR(change.worst_ulps, 4e-3 / std::pow(2.0, -23), 20);
}

TEST(Classify, BeyondEightFloorsIsDriftAndBeyondAHundredDifferent) {
  Golden drift = sample(), different = sample();
  drift.probes[0].values[3] += 9e-3f;
  different.probes[0].values[3] += 0.11f;
  EXPECT_EQ(classify(sample(), drift).kind, Class::kDrift);
  EXPECT_EQ(classify(sample(), different).kind, Class::kDifferent);
}

TEST(Classify, LooksAtBeams) {
  Golden before = sample();
  before.beams = BeamRecord{{{5}, {7}}, {-1, -2}, 1e-6f, {{{0, 0}, {5, 7}, {-1, -2, -3}, 1e-6f}}};
  EXPECT_EQ(classify(before, before).kind, Class::kSame);
  Golden after = before;
  after.beams->steps[0].log_probs[1] += 4e-6f;
  EXPECT_EQ(classify(before, after).kind, Class::kNoise);
  after.beams->steps[0].log_probs[1] += 2e-5f;
  EXPECT_EQ(classify(before, after).kind, Class::kDrift);
  EXPECT_EQ(classify(before, after).worst_probe, "beams");
  after = before;
  after.beams->sequences[1] = {8};
  EXPECT_EQ(classify(before, after).kind, Class::kDifferent);
  after.beams.reset();
  EXPECT_EQ(classify(before, after).kind, Class::kDrift);
}

TEST(Classify, LooksAtNormsAndStates) {
  Golden norm = sample(), state = sample();
  norm.probes[0].norm[2] += 0.02f;
  state.states[0].states[0].values[1] += 0.02f;
  EXPECT_EQ(classify(sample(), norm).kind, Class::kDrift);
  const Change change = classify(sample(), state);
  EXPECT_EQ(change.kind, Class::kDrift);
  EXPECT_EQ(change.worst_probe, "layers.0.mixer.conv_state after 2");
}

TEST(Classify, AChangedTokenIsADifferentAnswerAndEndsTheComparison) {
  Golden candidate = sample();
  candidate.tokens[1] = 9;
  candidate.probes[0].values[2] = 50;  // follows another token: not comparable
  const Change change = classify(sample(), candidate);
  EXPECT_EQ(change.kind, Class::kDifferent);
  EXPECT_EQ(change.tokens_changed, 1);
  EXPECT_EQ(change.worst_floors, 0);
}

TEST(Classify, AnotherConfigOrProbeSetIsNeverNoise) {
  Golden config = sample(), probes = sample(), cuts = sample();
  config.config_digest = "d";
  probes.probes[0].name = "norm_f";
  cuts.states[0].cut = 1;
  for (const Golden& candidate : {config, probes, cuts}) {
    const Change change = classify(sample(), candidate);
    EXPECT_EQ(change.kind, Class::kDrift);
    EXPECT_NE(change.note, "");
  }
}

TEST(Classify, OtherFloorsAloneAreNoise) {
  Golden candidate = sample();
  candidate.probes[0].floor[1] = 2e-3f;
  const Change change = classify(sample(), candidate);
  EXPECT_EQ(change.kind, Class::kNoise);
  EXPECT_EQ(change.note, "floors differ");
}

}  // namespace
}  // namespace assay::golden
