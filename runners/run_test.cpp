// `assay run` as a process: what it prints, what it leaves on disk, how it ends.
#include <gtest/gtest.h>

#include "runners/testing/runs.hpp"

namespace assay {
namespace {

using testing::Ended;
using testing::Runs;
using testing::shell;
namespace fs = std::filesystem;

TEST_F(Runs, AThirdPartysEngineRuns) {
  const Ended ended = run("mamba");
  EXPECT_EQ(ended.code, 0) << ended.text;
  EXPECT_EQ(rows().size(), 4U);
  EXPECT_NE(ended.text.find("# cpu . tiny 1 . 4 cases, 1 subject"), std::string::npos) << ended.text;
  EXPECT_EQ(ended.text.find('\033'), std::string::npos) << "no control sequences in a pipe";
  const ResultFile file = read_results(results());
  EXPECT_TRUE(file.complete);
  EXPECT_EQ(file.run.at("selection").at("count"), 4);
}

TEST_F(Runs, ACrashIsARowAndTheRestRuns) {
  const Ended ended = run("mamba", "crash@2");
  EXPECT_EQ(ended.code, 1) << ended.text;
  const auto seen = rows();
  ASSERT_EQ(seen.size(), 4U);
  EXPECT_EQ(seen.at("mamba/cache.two").status, Status::kCrash);
  EXPECT_NE(seen.at("mamba/cache.two").reason.find("SIGABRT"), std::string::npos);
  for (const char* other : {"mamba/cache.split", "mamba/logits.a", "mamba/logits.b"})
    EXPECT_EQ(seen.at(other).status, Status::kPass) << other;
}

TEST_F(Runs, AnAcceleratedSubjectThatNamesNoKernelFellBack) {
  const Ended ended = run("--case mamba/logits.a", "fallback");
  EXPECT_EQ(ended.code, 1) << ended.text;
  EXPECT_EQ(rows().at("mamba/logits.a").status, Status::kFallback);
  EXPECT_NE(ended.text.find("selective_scan"), std::string::npos) << ended.text;
}

TEST_F(Runs, AHangIsEndedByTheWatchdog) {
  const Ended ended = run("mamba --timeout 2", "hang@2");
  EXPECT_EQ(ended.code, 1) << ended.text;
  const auto seen = rows();
  ASSERT_EQ(seen.size(), 4U);
  EXPECT_EQ(seen.at("mamba/cache.two").status, Status::kTimeout);
  EXPECT_EQ(seen.at("mamba/logits.a").status, Status::kPass);
}

TEST_F(Runs, TheRepeatLineReproducesAFailure) {
  const Ended ended = run("mamba", "skip@2");
  EXPECT_EQ(ended.code, 1) << ended.text;
  const Verdict failed = rows().at("mamba/cache.two");
  EXPECT_EQ(failed.status, Status::kFail);
  EXPECT_NE(ended.text.find("repeat:  " + failed.repeat), std::string::npos) << ended.text;
  const std::string program = fs::path(ASSAY_EXECUTABLE).parent_path().string();
  const Ended again = shell("cd " + shell_quoted(root().string()) + " && PATH=" + shell_quoted(program) +
                            ":$PATH ASSAY_TINY_FAULT=skip@2 " + failed.repeat);
  EXPECT_EQ(again.code, 1) << again.text;
  const ResultFile repeated = read_results(root() / "out" / "latest" / kResultsName);
  ASSERT_EQ(repeated.rows.size(), 1U);
  EXPECT_EQ(repeated.rows[0].signature, failed.signature);
}

TEST_F(Runs, RerunFailedRunsOnlyThose) {
  run("mamba", "skip@2");
  const std::string file = shell_quoted(results().string());
  const Ended again =
      shell(command("run --rerun-failed " + file + " --out " + shell_quoted((root() / "again").string())));
  EXPECT_EQ(again.code, 0) << again.text;
  const ResultFile rerun = read_results(root() / "again" / kResultsName);
  ASSERT_EQ(rerun.rows.size(), 1U);
  EXPECT_EQ(rerun.rows[0].case_id, "mamba/cache.two");
  const Ended nothing =
      shell(command("run --rerun-failed " + shell_quoted((root() / "again" / kResultsName).string())));
  EXPECT_EQ(nothing.code, 2) << "nothing failed there: nothing to run is not a pass";
}

TEST_F(Runs, DumpWritesTheFailingTensors) {
  const fs::path dump = root() / "dump";
  EXPECT_EQ(run("mamba --dump " + shell_quoted(dump.string()), "skip@2").code, 1);
  EXPECT_TRUE(fs::exists(dump / "tiny.mamba.cache.two.safetensors"));
  EXPECT_NE(read_file(dump / "tiny.mamba.cache.two.txt").find("layers.0.mixer.scan"), std::string::npos);
}

TEST_F(Runs, SigtermKeepsTheRowsAndMarksTheRunningCase) {
  const pid_t child = start("mamba", "hang@2");
  ASSERT_TRUE(appears("mamba/cache.two"));
  kill(child, SIGTERM);
  EXPECT_EQ(wait_for(child), 3);
  const ResultFile file = read_results(results());
  ASSERT_FALSE(file.rows.empty());
  EXPECT_EQ(file.rows.back().status, Status::kNotRun);
  EXPECT_EQ(file.rows.back().reason, "interrupted by SIGTERM");
  EXPECT_TRUE(file.has_end);
  EXPECT_FALSE(file.complete);
}

TEST_F(Runs, SigkillLeavesAReadableFileThatResumeContinues) {
  const pid_t child = start("mamba", "hang@2");
  ASSERT_TRUE(appears("mamba/cache.two"));
  kill(child, SIGKILL);
  EXPECT_EQ(wait_for(child), 128 + SIGKILL);
  const ResultFile file = read_results(results());
  EXPECT_FALSE(file.has_end);
  EXPECT_EQ(file.rows.size(), 1U);
  ASSERT_EQ(file.interrupted.size(), 1U);
  EXPECT_EQ(file.interrupted[0].second, "mamba/cache.two");

  const Ended resumed = run("--resume");
  EXPECT_EQ(resumed.code, 0) << resumed.text;
  EXPECT_NE(resumed.text.find("1 rows are kept"), std::string::npos) << resumed.text;
  EXPECT_EQ(rows().size(), 4U);
  EXPECT_TRUE(read_results(results()).complete);
}

TEST_F(Runs, AnOutputFolderThatCannotBeWrittenEndsWith3) {
  for (const char* bad : {"/dev/null/out", "/proc/out"}) {
    Ended ended =
        shell(command(std::string("run mamba --out ") + bad + " --subject " + shell_quoted(ASSAY_TINY_SUBJECT)));
    EXPECT_EQ(ended.code, 3) << ended.text;
    EXPECT_NE(ended.text.find(bad), std::string::npos) << ended.text;
    ended = run(std::string("mamba --dump ") + bad);
    EXPECT_EQ(ended.code, 3) << ended.text;
  }
  fs::create_directories(out());
  fs::create_symlink("/dev/full", results());
  const Ended full = run("mamba");
  EXPECT_EQ(full.code, 3) << full.text;
  EXPECT_NE(full.text.find("No space left"), std::string::npos) << full.text;
}

TEST_F(Runs, WrongNamesEndWith2AndNameTheNearest) {
  const auto expect = [this](const std::string& arguments, const std::string& hint) {
    const Ended ended = run(arguments);
    EXPECT_EQ(ended.code, 2) << arguments << ": " << ended.text;
    EXPECT_NE(ended.text.find(hint), std::string::npos) << arguments << ": " << ended.text;
  };
  expect("mambo", "mamba");
  expect("--case mamba/logits.aa", "mamba/logits.a");
  expect("'mamba/nothing.*'", "nothing");
  expect("", "name a model");
  expect("mamba --tier fast", "smoke, ci, slow");
  expect("mamba --shard 5/5", "holds none");
  expect("mamba --fail-on GREEN", "unknown status");
  Ended ended = shell(command("run mamba --subject referense"));
  EXPECT_EQ(ended.code, 2) << ended.text;
  EXPECT_NE(ended.text.find("did you mean 'reference'"), std::string::npos) << ended.text;
  ended = shell(
      command("run mamba --out " + shell_quoted(out().string()) + " --subject " + shell_quoted(ASSAY_EXECUTABLE)));
  EXPECT_EQ(ended.code, 2) << "no subject: " << ended.text;
  ended = shell(command("rum mamba"));
  EXPECT_EQ(ended.code, 2) << ended.text;
  EXPECT_NE(ended.text.find("did you mean 'run'"), std::string::npos) << ended.text;
}

TEST_F(Runs, AllSkippedEndsWith77AndCountsTheReasons) {
  const fs::path file = root() / "cases/models/mamba/logits.a.json";
  nlohmann::json document = read_json(file);
  document["requires"] = {{"gpu", true}};
  write_file(file, document.dump());
  const Ended ended = run("--case mamba/logits.a");
  EXPECT_EQ(ended.code, 77) << ended.text;
  EXPECT_NE(ended.text.find("skipped: 1 tiny no_gpu"), std::string::npos) << ended.text;
  EXPECT_EQ(run("--case mamba/logits.a --fail-on SKIP").code, 1);
}

TEST_F(Runs, ShardsAreDisjointAndComplete) {
  std::map<std::string, int> seen;
  for (const char* shard : {"1/3", "2/3", "3/3"}) {
    EXPECT_EQ(run(std::string("mamba --shard ") + shard).code, 0);
    for (const auto& [id, row] : rows()) ++seen[id];
  }
  EXPECT_EQ(seen.size(), 4U);
  for (const auto& [id, count] : seen) EXPECT_EQ(count, 1) << id;
}

TEST_F(Runs, AMalformedCaseOrGoldenIsOneClearMessage) {
  write_file(root() / "golden/models/mamba/small.a.f32.json", "{\"schema\": \"assay.golden/1\", ");
  Ended ended = run("--case mamba/logits.a");
  EXPECT_EQ(ended.code, 1) << ended.text;
  EXPECT_EQ(rows().at("mamba/logits.a").status, Status::kError);
  EXPECT_NE(ended.text.find("small.a.f32.json"), std::string::npos) << ended.text;
  write_file(root() / "cases/models/mamba/logits.a.json", "{\"schema\": ");
  ended = run("mamba");
  EXPECT_EQ(ended.code, 2) << ended.text;
  EXPECT_NE(ended.text.find("logits.a.json"), std::string::npos) << ended.text;
}

}  // namespace
}  // namespace assay
