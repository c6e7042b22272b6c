#include "runners/coverage.hpp"

#include <gtest/gtest.h>

#include "cases/spec/select.hpp"
#include "runners/testing/runs.hpp"

namespace assay {
namespace {

using testing::Ended;
using testing::Runs;
using testing::shell;

TEST(Coverage, TheTableShowsCountsAndGaps) {
  Coverage coverage;
  coverage["mamba"]["logits"] = {3, 3};
  coverage["mamba"]["int4"] = {7, 5};
  const std::string text = coverage_table({"mamba", "jamba"}, coverage);
  const std::string mamba = text.substr(text.find("\nmamba") + 1, text.find("\njamba") - text.find("\nmamba"));
  for (const char* aspect : kAspects) EXPECT_NE(text.find(aspect), std::string::npos) << text;
  EXPECT_NE(mamba.find("       3        -"), std::string::npos) << text;
  EXPECT_NE(mamba.find("5/7"), std::string::npos) << text;
  EXPECT_EQ(text.substr(text.find("\njamba")).find_first_of("0123456789"), std::string::npos) << text;
}

TEST_F(Runs, CoverageNamesWhatIsMissing) {
  const Ended all = shell(command("list --coverage"));
  expect_ends(all, 1, {"logits", "missing  mamba/beams", "missing  mamba/int4", "missing  mamba2/logits"});
  EXPECT_EQ(all.text.find("missing  mamba/logits"), std::string::npos) << all.text;
  const Ended one = shell(command("list mamba --coverage"));
  expect_ends(one, 1, {"missing  mamba/beams"});
  EXPECT_EQ(one.text.find("mamba2"), std::string::npos) << one.text;
  expect_ends(shell(command("list 'mamba/cache.*' --coverage")), 0, {"2"});
  expect_ends(shell(command("list --coverage --subject " + shell_quoted(ASSAY_TINY_SUBJECT))), 1, {"tiny on cpu"});
}

TEST_F(Runs, CoverageOfASubjectCountsWhatItCanRun) {
  add_mamba2();
  expect_ends(shell(command("list mamba2 --coverage --subject " + shell_quoted(ASSAY_TINY_SUBJECT))), 1, {" 0/1 "});
}

TEST_F(Runs, AWholeRunFailsWhereACellIsMissing) {
  const Ended ended = run("'*'");
  expect_ends(ended, 1, {"MISSING   mamba/beams", "MISSING   mamba2/cache"});
  const auto cells = read_results(results()).run.at("missing_cells").get<std::vector<std::string>>();
  EXPECT_EQ(std::count(cells.begin(), cells.end(), "mamba/long"), 1);
  EXPECT_EQ(std::count(cells.begin(), cells.end(), "mamba/cache"), 0);
  for (const char* part : {"mamba", "'mamba/*'", "'*/cache.*'"}) EXPECT_EQ(run(part).code, 0) << part;
}

TEST_F(Runs, WholeModelsAreThoseThatWildcardsCover) {
  const Corpus corpus = read_corpus(root());
  const std::vector<std::string> mamba{"mamba"};
  for (const char* selector : {"mamba", "mamba/*", "mamba/*.*", "model:mamba"})
    EXPECT_EQ(whole_models(corpus, {selector}), mamba) << selector;
  for (const char* selector : {"*/cache.*", "aspect:cache", "tier:smoke", "mamba/logits.a"})
    EXPECT_TRUE(whole_models(corpus, {selector}).empty()) << selector;
  EXPECT_EQ(whole_models(corpus, {"*"}), all_models());
  EXPECT_EQ(whole_models(corpus, {"model:*"}), all_models());
}

}  // namespace
}  // namespace assay
