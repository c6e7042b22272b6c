#include "cases/spec/digest.hpp"

#include <gtest/gtest.h>

namespace assay {
namespace {

// The examples of FIPS 180-4 (NIST's SHA256 example file) and its "long" test of a million letters.
TEST(Sha256, KnownAnswers) {
  EXPECT_EQ(sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256("abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmn"
                   "opqrstnopqrstu"),
            "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1");
  EXPECT_EQ(sha256(std::string(1000000, 'a')), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, EveryLengthAroundABlockIsItsOwn) {
  std::string last;
  for (size_t length = 50; length < 70; ++length) {
    const std::string digest = sha256(std::string(length, 'x'));
    EXPECT_NE(digest, last);
    EXPECT_EQ(digest, sha256(std::as_bytes(std::span(std::string(length, 'x').data(), length))));
    last = digest;
  }
}

}  // namespace
}  // namespace assay
