#include "golden/signature.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace assay::golden {
namespace {

Finding finding(double got) {
  return {.probe = "layers.3.mixer.conv1d",
          .layer = 3,
          .position = 7,
          .step = 5,
          .index = {12},
          .expected = 1,
          .got = got,
          .bound = 0.5,
          .bad = 3,
          .of = 64,
          .what = "value"};
}

TEST(Signature, IsTheSameForLastDigitsAndOtherElements) {
  EXPECT_EQ(signature("FAIL", finding(129)), "FAIL:value:layers.3.mixer.conv1d:step5:2^8");
  Finding other = finding(129.01);
  other.index = {13};
  other.position = 6;
  other.bad = 4;
  EXPECT_EQ(signature("FAIL", other), signature("FAIL", finding(129)));
  EXPECT_EQ(signature("FAIL", finding(-127)), signature("FAIL", finding(129)));
  EXPECT_EQ(signature("FAIL", finding(256)), signature("FAIL", finding(129)));  // 510 bounds: below 2^9
}

TEST(Signature, DiffersByStatusPlaceClassAndSize) {
  const std::string base = signature("FAIL", finding(129));
  EXPECT_NE(signature("FLAKY", finding(129)), base);
  EXPECT_EQ(signature("FAIL", finding(257.5)), "FAIL:value:layers.3.mixer.conv1d:step5:2^9");
  Finding other = finding(129);
  other.step = 6;
  EXPECT_NE(signature("FAIL", other), base);
  other = finding(129);
  other.probe = "layers.2.mixer.conv1d";
  EXPECT_NE(signature("FAIL", other), base);
  other = finding(129);
  other.what = "norm";
  EXPECT_NE(signature("FAIL", other), base);
}

TEST(Signature, LeavesOutASizeThatIsNoNumber) {
  Finding wrong = finding(std::numeric_limits<double>::quiet_NaN());
  wrong.what = "not finite";
  EXPECT_EQ(signature("FAIL", wrong), "FAIL:not finite:layers.3.mixer.conv1d:step5");
  const Finding token{.probe = "tokens", .position = 4, .expected = 12, .got = 99, .what = "token"};
  EXPECT_EQ(signature("FAIL", token), "FAIL:token:tokens");
}

}  // namespace
}  // namespace assay::golden
