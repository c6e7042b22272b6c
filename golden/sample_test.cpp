#include "golden/sample.hpp"

#include <gtest/gtest.h>

#include <set>

namespace assay::golden {
namespace {

TEST(SampleSize, IsOneAHeadFromFourToSixteen) {
  EXPECT_EQ(sample_size({24}), 4);
  EXPECT_EQ(sample_size({803}), 4);
  EXPECT_EQ(sample_size({9}), 4);
  EXPECT_EQ(sample_size({6}), 6);
  EXPECT_EQ(sample_size({2, 3}), 6);
  EXPECT_EQ(sample_size({4, 8}), 4);
  EXPECT_EQ(sample_size({6, 8}), 6);
  EXPECT_EQ(sample_size({9, 5}), 9);
  EXPECT_EQ(sample_size({128, 64}), 16);
}

TEST(SampleIndices, AscendOneFromEachStratum) {
  const auto sample = sample_indices("layers.0.mixer.in_proj", 7, {803}, 8);
  ASSERT_EQ(sample.size(), 8u);
  for (int64_t stratum = 0; stratum < 8; ++stratum) {
    EXPECT_GE(sample[stratum], stratum * 803 / 8);
    EXPECT_LT(sample[stratum], (stratum + 1) * 803 / 8);
  }
}

TEST(SampleIndices, AreTheSameAgainAndOthersForAnotherNameOrSeed) {
  const auto sample = sample_indices("norm_f", 7, {4096}, 8);
  EXPECT_EQ(sample, sample_indices("norm_f", 7, {4096}, 8));
  EXPECT_NE(sample, sample_indices("norm_f", 8, {4096}, 8));
  EXPECT_NE(sample, sample_indices("embed", 7, {4096}, 8));
}

TEST(SampleIndices, KeepASmallRowWhole) {
  EXPECT_TRUE(sample_indices("layers.0.mixer.dt", 7, {6}, 8).empty());
  EXPECT_TRUE(sample_indices("layers.0.mixer.dt", 7, {8}, 8).empty());
  EXPECT_EQ(sample_indices("layers.0.mixer.dt", 7, {9}, 8).size(), 8u);
}

TEST(SampleIndices, TouchEveryHead) {
  for (int64_t heads : {2, 3, 5, 6, 7, 9, 12, 16})
    for (uint64_t seed = 0; seed < 50; ++seed) {
      std::set<int64_t> seen;
      for (int64_t index : sample_indices("layers.0.mixer.ssd", seed, {heads, 5}, sample_size({heads, 5})))
        seen.insert(index / 5);
      const bool is_whole = sample_size({heads, 5}) >= heads * 5;  // no sample then
      EXPECT_EQ(seen.size(), is_whole ? 0u : static_cast<size_t>(heads)) << heads << " heads, seed " << seed;
    }
}

TEST(SampleIndices, TouchEveryColumnOfAWindow) {
  for (int64_t window : {2, 3, 4})
    for (uint64_t seed = 0; seed < 50; ++seed) {
      std::set<int64_t> seen;
      int64_t previous = -1;
      for (int64_t index : sample_indices("layers.0.mixer.conv_state", seed, {45, window}, 16)) {
        EXPECT_GT(index, previous);
        EXPECT_LT(index, 45 * window);
        previous = index;
        seen.insert(index % window);
      }
      EXPECT_EQ(seen.size(), static_cast<size_t>(window)) << window << " columns, seed " << seed;
    }
}

}  // namespace
}  // namespace assay::golden
