#include "cases/spec/select.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "cases/spec/error.hpp"
#include "cases/spec/scratch_folder.hpp"

namespace assay {
namespace {

namespace fs = std::filesystem;

const Corpus& repository() {
  static const Corpus corpus = read_corpus(ASSAY_ROOT);
  return corpus;
}

std::vector<std::string> ids(const std::vector<std::string>& selectors) {
  std::vector<std::string> result;
  for (const Case* test_case : select_cases(repository(), selectors)) result.push_back(test_case->id);
  return result;
}

std::string refusal(const std::vector<std::string>& selectors) {
  try {
    select_cases(repository(), selectors);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

void expect_parts(const std::string& text, std::initializer_list<const char*> parts) {
  EXPECT_NE(text, "") << "was accepted";
  for (const char* part : parts) EXPECT_NE(text.find(part), std::string::npos) << "no '" << part << "' in: " << text;
}

TEST(Glob, StarsAndQuestionMarks) {
  EXPECT_TRUE(glob_matches("*", ""));
  EXPECT_TRUE(glob_matches("*/cache.*", "mamba2/cache.splits"));
  EXPECT_TRUE(glob_matches("mamba?/cache.*", "mamba2/cache.splits"));
  EXPECT_FALSE(glob_matches("mamba?/cache.*", "mamba/cache.splits"));
  EXPECT_TRUE(glob_matches("*a*b*c", "xaxbxbxc"));
  EXPECT_FALSE(glob_matches("*a*b*c", "xaxbxcx"));
  EXPECT_FALSE(glob_matches("", "a"));
  // Every star backtracks to the last one only: no exponential time.
  EXPECT_FALSE(glob_matches("*a*a*a*a*a*a*a*a*a*a*a*b", std::string(5000, 'a')));
}

TEST(Nearest, ByEditDistance) {
  EXPECT_EQ(nearest("mamba3", {"jamba", "mamba2", "zamba"}).front(), "mamba2");
  EXPECT_EQ(nearest("lenght", {"pad", "length", "input"}).front(), "length");
  EXPECT_TRUE(nearest("xyzzy", {"pad"}).empty());
  EXPECT_EQ(nearest("teir", {"why", "tier"}).front(), "tier") << "a swap is one mistake";
  EXPECT_TRUE(nearest("nosuch", {"mamba", "jamba"}).empty());
  EXPECT_EQ(nearest("cache.splits", {"mamba2/cache.splits", "mamba/logits.a"}).front(), "mamba2/cache.splits");
  EXPECT_EQ(nearest_list("xyzzy", {"pad"}), "none is close; there is pad");
  EXPECT_EQ(nearest("a", {"b", "c", "a1", "a2", "a3", "a4"}).size(), 3u);
}

TEST(Select, ModelsGlobsAndTerms) {
  const std::vector<std::string> mamba2 = ids({"mamba2"});
  EXPECT_FALSE(mamba2.empty());
  for (const std::string& id : mamba2) EXPECT_EQ(id.rfind("mamba2/", 0), 0u) << id;
  EXPECT_EQ(ids({"model:mamba2"}), mamba2);
  EXPECT_EQ(ids({"mamba2/*"}), mamba2);
  const size_t all = repository().cases.size() + repository().op_cases.size();
  EXPECT_EQ(ids({"*"}).size(), all);
  EXPECT_EQ(ids({"aspect:cache"}), ids({"*/cache.*"}));
  const std::vector<std::string> with_ssd = ids({"op:ssd"});
  const auto has = [&with_ssd](const std::string& id) {
    return std::find(with_ssd.begin(), with_ssd.end(), id) != with_ssd.end();
  };
  for (const std::string& id : mamba2) EXPECT_TRUE(has(id)) << id;
  for (const std::string& id : ids({"ops/ssd.*"})) EXPECT_TRUE(has(id)) << id;
  for (const std::string& id : ids({"mamba", "ops/selective_scan.*"})) EXPECT_FALSE(has(id)) << id;
  EXPECT_EQ(ids({"mamba2/cache.splits"}), std::vector<std::string>{"mamba2/cache.splits"});
  EXPECT_EQ(ids({"tier:smoke"}).size() + ids({"tier:ci"}).size() + ids({"tier:slow"}).size(), all);
  std::vector<std::string> awkward;
  for (const auto& [id, config] : repository().configs)
    if (config.name == "awkward") awkward.push_back("config:" + id);
  EXPECT_GE(awkward.size(), 2u);
  EXPECT_EQ(ids(awkward), ids({"config:awkward"}));
}

TEST(Select, UnionInCorpusOrderWithoutRepeats) {
  EXPECT_EQ(ids({"ops", "mamba2", "mamba", "mamba2/cache.splits"}), ids({"model:mamba", "mamba2/*", "ops/*"}));
}

TEST(Select, FilesHoldOneSelectorALine) {
  const ScratchFolder folder;
  const std::string file = (folder.path() / "selectors").string();
  std::ofstream(file) << "# smoke only\n\n  mamba/cache.splits  # trailing words\nmamba2/cache.splits\n";
  EXPECT_EQ(ids({"@" + file}), (std::vector<std::string>{"mamba/cache.splits", "mamba2/cache.splits"}));
  std::ofstream(file) << "# nothing\n";
  expect_parts(refusal({"@" + file}), {"no selector"});
  std::ofstream(file) << std::string((1 << 20) + 1, '#');
  expect_parts(refusal({"@" + file}), {"1 MiB"});
  std::ofstream(file) << "@" << file << "\n";
  expect_parts(refusal({"@" + file}), {"name each other"});
  fs::remove(file);
  expect_parts(refusal({"@" + file}), {"no such file", "one selector a line"});
}

TEST(Select, UnknownNamesListTheNearest) {
  expect_parts(refusal({"mamba3"}), {"mamba3", "mamba2"});
  expect_parts(refusal({"mamba3/*"}), {"mamba3", "mamba2"});
  expect_parts(refusal({"mamba2/cache.split"}), {"mamba2/cache.splits"});
  expect_parts(refusal({"aspect:cash"}), {"cash", "cache"});
  expect_parts(refusal({"op:sdd"}), {"sdd", "ssd"});
  expect_parts(refusal({"tier:smok"}), {"smoke"});
  expect_parts(refusal({"config:tinny"}), {"tiny"});
  expect_parts(refusal({"aspects:cache"}), {"aspects:", "aspect"});
  expect_parts(refusal({"mamba2", "mamba3"}), {"mamba3"});
}

TEST(Select, NothingSelectedIsAnError) {
  expect_parts(refusal({}), {"no selector"});
  expect_parts(refusal({""}), {"empty"});
  expect_parts(refusal({"aspect:"}), {"names nothing"});
  expect_parts(refusal({"mamba2/nothing.*"}), {"matches no case"});
  expect_parts(refusal({"*/offload.nothing"}), {"matches no case"});
}

}  // namespace
}  // namespace assay
