#include "fast/blocks/state_shapes.hpp"

#include <gtest/gtest.h>

namespace assay::fast {
namespace {

TEST(AddState, AnotherPartAddsWhatItHasAndLeavesTheRest) {
  LayerStateShape state;
  state.conv = {6, 4};
  state.ssm = {3, 2, 5};
  LayerStateShape attention;
  attention.key = attention.value = {2, 8};
  add_state(state, attention);
  add_state(state, LayerStateShape());
  EXPECT_EQ(state.conv, (Shape{6, 4}));
  EXPECT_EQ(state.ssm, (Shape{3, 2, 5}));
  EXPECT_EQ(state.key, (Shape{2, 8}));
  EXPECT_EQ(state.value, (Shape{2, 8}));
  EXPECT_TRUE(state.delta.empty());
}

}  // namespace
}  // namespace assay::fast
