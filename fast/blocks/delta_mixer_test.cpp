#include "fast/blocks/delta_mixer.hpp"

#include <gtest/gtest.h>

namespace assay::fast {
namespace {

DeltaMixerShape shape() {
  DeltaMixerShape shape;
  shape.key_heads = 2;
  shape.value_heads = 4;
  shape.key_dim = 1;
  shape.value_dim = 1;
  shape.is_packed = true;
  return shape;
}

// A key head's block: q, k, two of v, two of z.
TEST(PackedOrder, PutsTheHeadsOfAPartSideBySide) {
  EXPECT_EQ(packed_qkvz_order(shape()), (std::vector<int32_t>{0, 6, 1, 7, 2, 3, 8, 9, 4, 5, 10, 11}));
}

// A key head's block: two of b, two of a.
TEST(PackedOrder, OfBetaAndDecay) {
  EXPECT_EQ(packed_ba_order(shape()), (std::vector<int32_t>{0, 1, 4, 5, 2, 3, 6, 7}));
}

}  // namespace
}  // namespace assay::fast
