#include "cases/spec/printable.hpp"

#include <gtest/gtest.h>

namespace assay {
namespace {

TEST(Printable, Utf8WithoutControlCharacters) {
  for (const char* good : {"", "layers.0.weight", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x99\x82", "\xf4\x8f\xbf\xbf"})
    EXPECT_TRUE(is_printable_utf8(good)) << good;
  for (const char* bad : {"\n", "\x1b[2J", "\x7f", "\xc2\x9b", "\x80", "\xc3", "\xc0\xaf", "\xe0\x80\xaf",
                          "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xf8\x88\x80\x80\x80", "\xe2\x28\xa1", "\xff"})
    EXPECT_FALSE(is_printable_utf8(bad)) << printable(bad);
  EXPECT_FALSE(is_printable_utf8(std::string("a\0b", 3)));
}

TEST(Printable, OneLineOfAscii) {
  EXPECT_EQ(printable("a\x1b[2J\xff"), R"(a\x1b[2J\xff)");
  EXPECT_EQ(printable(std::string(1000, 'a')).size(), 80u);
}

}  // namespace
}  // namespace assay
