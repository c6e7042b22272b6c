#include "runners/output_digest.hpp"

#include <gtest/gtest.h>

#include <set>

namespace assay {
namespace {

std::string digest_of(const std::string& name, const HostTensor& value) {
  OutputDigest digest;
  digest.add(name, value);
  return digest.text();
}

TEST(OutputDigest, NothingHasNone) { EXPECT_EQ(OutputDigest().text(), ""); }

TEST(OutputDigest, EqualOutputsHaveEqualOnes) {
  const HostTensor value({1, 3}, std::vector<float>{1, 2, 3});
  EXPECT_EQ(digest_of("logits", value), digest_of("logits", value));
  EXPECT_EQ(digest_of("logits", value).size(), 16u);
}

TEST(OutputDigest, NameShapeSignAndTheLastOddElementCount) {
  std::set<std::string> seen;
  for (const HostTensor& value :
       {HostTensor({1, 3}, std::vector<float>{1, 2, 3}), HostTensor({3, 1}, std::vector<float>{1, 2, 3}),
        HostTensor({1, 3}, std::vector<float>{1, 2, 3.0000002f}), HostTensor({1, 3}, std::vector<float>{2, 1, 3}),
        HostTensor({1, 3}, std::vector<float>{1, 2, 0}), HostTensor({1, 3}, std::vector<float>{1, 2, -0.0f})})
    for (const char* name : {"logits", "embed"}) EXPECT_TRUE(seen.insert(digest_of(name, value)).second);
}

TEST(OutputDigest, OrderCounts) {
  const HostTensor a({1}, std::vector<float>{1}), b({1}, std::vector<float>{2});
  OutputDigest one, other;
  one.add({.probes = {{"logits", a}, {"logits", b}}});
  other.add({.probes = {{"logits", b}, {"logits", a}}});
  EXPECT_NE(one.text(), other.text());
}

}  // namespace
}  // namespace assay
