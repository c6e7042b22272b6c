// --resume and --rerun-failed: no row of an earlier run is lost.
#include <gtest/gtest.h>

#include "runners/testing/runs.hpp"

namespace assay {
namespace {

using testing::Runs;
using testing::shell;
namespace fs = std::filesystem;

TEST_F(Runs, ResumeOfAnotherSelectionIsRefused) {
  ASSERT_EQ(run("'mamba/logits.*'").code, 0);
  const std::string before = read_file(results());
  expect_ends(run("'mamba/cache.*' --resume"), 2, {"mamba/logits.*", "mamba/cache.*", "--out DIR"});
  expect_ends(run("'mamba/logits.*' --resume --tier smoke"), 2, {"--tier smoke"});
  expect_ends(shell(command("run --resume --subject reference --out " + shell_quoted(out().string()))), 2,
              {"--subject reference"});
  EXPECT_EQ(read_file(results()), before);
  expect_ends(run("'mamba/logits.*' --resume"), 0, {"2 rows are kept"});
  EXPECT_EQ(rows().size(), 2U);
}

TEST_F(Runs, ResumeSaysWhatIsWrongWithTheFolder) {
  expect_ends(run("--resume"), 2, {"no run to resume", "results.jsonl", "--out DIR"});
  ASSERT_EQ(run("mamba").code, 0);
  write_file(results(), read_file(results()) + "\x01garbage\n");
  expect_ends(run("--resume"), 2, {"results.jsonl:11", "not a line of results", "without --resume"});
}

TEST_F(Runs, RerunFailedDoesNotWriteOverItsSource) {
  ASSERT_EQ(run("mamba", "skip@2").code, 1);
  const std::string before = read_file(results());
  expect_ends(run("--rerun-failed " + shell_quoted(results().string())), 2, {"write over", "--out DIR"});
  EXPECT_EQ(read_file(results()), before);
  expect_ends(run("--rerun-failed /nonexist"), 2, {"no file '/nonexist'", "out/latest/results.jsonl"});
}

TEST_F(Runs, RerunFailedOfTheUsualFolderWritesBesideIt) {
  const std::string in_root = "cd " + shell_quoted(root().string()) + " && ";
  const std::string tiny = "run --subject " + shell_quoted(ASSAY_TINY_SUBJECT);
  ASSERT_EQ(shell(in_root + "ASSAY_TINY_FAULT=skip@2 " + command(tiny + " mamba")).code, 1);
  const fs::path latest = root() / "out/latest" / kResultsName;
  EXPECT_EQ(read_results(latest).rows.size(), 4U);
  ASSERT_EQ(shell(in_root + command("run --rerun-failed out/latest/results.jsonl")).code, 0);
  EXPECT_EQ(read_results(latest).rows.size(), 4U);
  EXPECT_EQ(read_results(root() / "out/rerun" / kResultsName).rows.size(), 1U);
}

}  // namespace
}  // namespace assay
