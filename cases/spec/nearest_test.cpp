#include "cases/spec/nearest.hpp"

#include <gtest/gtest.h>

namespace assay {
namespace {

// The names of a file can be of any length; a table of 10^14 distances is not made.
TEST(Nearest, LongNamesAreNearNothing) {
  const std::string huge(10'000'000, 'a');
  EXPECT_TRUE(nearest(huge, {huge, "a"}).empty());
  EXPECT_TRUE(nearest("norm.weight", {huge}).empty());
  EXPECT_EQ(nearest("norm.weigth", {huge, "norm.weight"}), std::vector<std::string>{"norm.weight"});
}

}  // namespace
}  // namespace assay
