#include "cases/spec/json.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <fstream>
#include <limits>

#include "cases/spec/error.hpp"
#include "cases/spec/scratch_folder.hpp"

namespace assay {
namespace {

namespace fs = std::filesystem;

std::string refusal(std::string_view text) {
  try {
    parse_json(text, "file.json");
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

bool says(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(Json, DuplicateKeysAreRefusedWithTheirPlace) {
  const std::string text = refusal("{\"a\": 1,\n \"b\": {\"c\": 1, \"c\": 2}}");
  EXPECT_TRUE(says(text, "file.json:2:")) << text;
  EXPECT_TRUE(says(text, "\"c\" stands twice")) << text;
  // The same name in two objects is no duplicate.
  EXPECT_EQ(parse_json("[{\"a\": 1}, {\"a\": 2, \"b\": {\"a\": 3}}]", "x")[1]["b"]["a"], 3);
}

TEST(Json, TruncatedTextSaysSo) {
  for (const char* text : {"{\"a\": [1, 2", "{\"a\": ", "{\"a", "", "[1,"}) {
    EXPECT_TRUE(says(refusal(text), "truncated")) << text << " -> " << refusal(text);
  }
}

TEST(Json, ErrorsNameLineAndColumn) {
  const std::string text = refusal("{\n  \"a\": 1,\n  \"b\": x\n}");
  EXPECT_TRUE(says(text, "file.json:3:8:")) << text;
  EXPECT_FALSE(says(text, "json.exception")) << text;
}

TEST(Json, TrailingTextAndNonNumbersAreRefused) {
  EXPECT_NE(refusal("{} {}"), "");
  EXPECT_NE(refusal("[1] x"), "");
  EXPECT_NE(refusal("{\"a\": NaN}"), "");
  EXPECT_NE(refusal("{\"a\": Infinity}"), "");
  EXPECT_NE(refusal("[1e999]"), "");
  EXPECT_NE(refusal("[01]"), "");
  EXPECT_NE(refusal("[1,]"), "");
  EXPECT_NE(refusal("// c\n1"), "");
  EXPECT_NE(refusal("\"\xff\""), "");
}

TEST(Json, DepthIsLimited) {
  const auto nested = [](size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_EQ(refusal(nested(64)), "");
  EXPECT_TRUE(says(refusal(nested(65)), "deeper than 64"));
  EXPECT_TRUE(says(refusal(std::string(1000000, '[')), "deeper than 64"));
}

TEST(Json, NumbersPrintShortestAndReadBack) {
  EXPECT_EQ(print_number(0.1f), "0.1");
  EXPECT_EQ(print_number(0.1), "0.1");
  EXPECT_EQ(print_number(std::nanf("")), "\"NaN\"");
  EXPECT_EQ(print_number(std::numeric_limits<double>::infinity()), "\"Infinity\"");
  EXPECT_EQ(print_number(-std::numeric_limits<float>::infinity()), "\"-Infinity\"");
  for (float value : {1.0f / 3, 1e-45f, 3.4028235e38f, -0.0f, 16777217.0f, 5.1e-12f}) {
    const std::string text = print_number(value);
    EXPECT_EQ(parse_json(text, "x").get<float>(), value) << text;
  }
}

TEST(Json, CanonicalFormDoesNotDependOnLayout) {
  EXPECT_EQ(canonical(parse_json("{\"b\": [1.0, 2.50, \"x\\n\"],\n \"a\": {\"z\": null, \"y\": true}}", "x")),
            "{\"a\":{\"y\":true,\"z\":null},\"b\":[1,2.5,\"x\\n\"]}");
}

TEST(Json, WritesAreWholeOrNot) {
  const ScratchFolder folder;
  const fs::path file = folder.path() / "out.json";
  write_file(file, "one");
  write_file(file, "two");
  EXPECT_EQ(read_file(file), "two");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()), 1);  // no temporary left
}

TEST(Json, UnusableFoldersAreHarnessErrors) {
  const ScratchFolder folder;
  try {
    write_file(folder.path() / "missing" / "out.json", "x");
    FAIL();
  } catch (const HarnessError& error) {
    EXPECT_TRUE(says(error.what(), (folder.path() / "missing").string())) << error.what();
    EXPECT_TRUE(says(error.what(), "No such file or directory")) << error.what();
  }
  std::ofstream(folder.path() / "plain") << "x";
  EXPECT_THROW(write_file(folder.path() / "plain" / "out.json", "x"), HarnessError);
  fs::create_directory(folder.path() / "out.json");
  EXPECT_THROW(write_file(folder.path() / "out.json", "x"), HarnessError);
  if (::geteuid() != 0) {  // root may write anywhere
    fs::permissions(folder.path(), fs::perms::owner_read | fs::perms::owner_exec);
    EXPECT_THROW(write_file(folder.path() / "other.json", "x"), HarnessError);
  }
}

TEST(Json, MissingFilesAreInputErrors) {
  const ScratchFolder folder;
  EXPECT_THROW(read_file(folder.path() / "none.json"), InputError);
  EXPECT_THROW(read_file(folder.path()), InputError);
  const auto refusal_of = [](const std::filesystem::path& file, size_t most) -> std::string {
    try {
      read_file(file, most);
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  const std::filesystem::path pipe = folder.path() / "pipe.json", big = folder.path() / "big.json";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(refusal_of(pipe, kMostTextBytes), pipe.string() + ": is not a regular file");
  EXPECT_EQ(refusal_of("/dev/zero", kMostTextBytes), "/dev/zero: is not a regular file");
  write_file(big, "12345");
  EXPECT_EQ(refusal_of(big, 5), "");
  EXPECT_EQ(refusal_of(big, 4), big.string() + ": has 5 bytes, more than 4 bytes");
  std::filesystem::resize_file(big, uintmax_t{1} << 40);  // sparse
  EXPECT_EQ(refusal_of(big, kMostTextBytes), big.string() + ": has 1099511627776 bytes, more than 64 MiB");
}

}  // namespace
}  // namespace assay
