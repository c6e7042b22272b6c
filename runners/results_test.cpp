#include "runners/results.hpp"

#include <gtest/gtest.h>

#include <filesystem>

#include "cases/spec/error.hpp"
#include "cases/spec/json.hpp"
#include "runners/run_request.hpp"
#include "runners/testing/fixture.hpp"

namespace assay {
namespace {

namespace fs = std::filesystem;

nlohmann::json run_line() {
  return {{"kind", "run"},
          {"schema", kResultSchema},
          {"commit", "abc"},
          {"versions", {"assay 0"}},
          {"host", "h"},
          {"devices", {"cpu"}},
          {"threads", 2},
          {"subjects", {{{"name", "tiny"}, {"argument", "tiny.so"}, {"device", "cpu"}, {"versions", {"tiny 1"}}}}},
          {"left_out", nlohmann::json::array()},
          {"selection", selection_json(RunRequest(), 1)},
          {"arguments", {"run"}},
          {"time", "2026-01-01T00:00:00Z"},
          {"resumed", false}};
}

Verdict row(const std::string& case_id, Status status) {
  Verdict v;
  v.subject = "tiny";
  v.case_id = case_id;
  v.status = status;
  return v;
}

TEST(Results, AFinishedFileReadsBack) {
  const testing::Folder folder;
  {
    ResultWriter writer(folder.path(), run_line(), {});
    writer.start("tiny", "mamba/logits.a");
    writer.result(row("mamba/logits.a", Status::kPass));
    writer.end(true, "");
  }
  const ResultFile file = read_results(folder.path() / kResultsName);
  EXPECT_EQ(file.run.at("commit"), "abc");
  ASSERT_EQ(file.rows.size(), 1U);
  EXPECT_EQ(file.rows[0].status, Status::kPass);
  EXPECT_TRUE(file.interrupted.empty());
  EXPECT_TRUE(file.has_end);
  EXPECT_TRUE(file.complete);
}

TEST(Results, AFileThatWasCutNamesTheOpenCase) {
  const testing::Folder folder;
  {
    ResultWriter writer(folder.path(), run_line(), {});
    writer.start("tiny", "mamba/logits.a");
    writer.result(row("mamba/logits.a", Status::kPass));
    writer.start("tiny", "mamba/logits.b");
  }
  const fs::path file = folder.path() / kResultsName;
  write_file(file, read_file(file) + R"({"kind":"result","subject":"ti)");
  const ResultFile cut = read_results(file);
  EXPECT_EQ(cut.rows.size(), 1U);
  ASSERT_EQ(cut.interrupted.size(), 1U);
  EXPECT_EQ(cut.interrupted[0].second, "mamba/logits.b");
  EXPECT_FALSE(cut.has_end);
}

TEST(Results, ABrokenLineIsNamed) {
  const testing::Folder folder;
  { ResultWriter writer(folder.path(), run_line(), {}); }
  const fs::path file = folder.path() / kResultsName;
  write_file(file, read_file(file) + "{\"kind\":\"end\"}\n");
  try {
    read_results(file);
    FAIL() << "an end line without counts was read";
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("results.jsonl:2"), std::string::npos) << error.what();
  }
  write_file(file, "");
  EXPECT_THROW(read_results(file), InputError);
}

TEST(Results, AFullDiskIsAHarnessError) {
  const testing::Folder folder;
  fs::create_symlink("/dev/full", folder.path() / kResultsName);
  EXPECT_THROW(ResultWriter(folder.path(), run_line(), {}), HarnessError);
}

TEST(Results, AFolderThatCannotBeMadeIsAHarnessError) {
  EXPECT_THROW(ResultWriter("/dev/null/out", run_line(), {}), HarnessError);
  EXPECT_THROW(check_writable("/proc/assay-out", "--dump"), HarnessError);
}

TEST(Results, TwoRunsDoNotShareAFile) {
  const testing::Folder folder;
  const ResultWriter first(folder.path(), run_line(), {});
  EXPECT_THROW(ResultWriter(folder.path(), run_line(), {}), HarnessError);
  EXPECT_EQ(read_results(folder.path() / kResultsName).run.at("host"), "h") << "the refused run must not truncate it";
}

TEST(Results, FailedPairsAreThoseNotAllowedOrNotFinished) {
  ResultFile file;
  file.rows = {row("m/a", Status::kPass), row("m/b", Status::kFail), row("m/c", Status::kSkip),
               row("m/d", Status::kNotRun)};
  file.interrupted = {{"tiny", "m/e"}};
  const auto pairs = failed_pairs(file, "f");
  EXPECT_EQ(pairs.size(), 3U);
  EXPECT_TRUE(pairs.contains({"tiny", "m/b"}));
  EXPECT_TRUE(pairs.contains({"tiny", "m/d"}));
  EXPECT_TRUE(pairs.contains({"tiny", "m/e"}));
  file.rows.resize(1);
  file.interrupted.clear();
  EXPECT_THROW(failed_pairs(file, "f"), InputError);
}

TEST(Shard, Parses) {
  EXPECT_EQ(parse_shard("2/3"), std::make_pair(int64_t{2}, int64_t{3}));
  for (const char* bad : {"", "2", "0/3", "4/3", "a/b", "1/3x", "1/", "/3", "-1/3"})
    EXPECT_THROW(parse_shard(bad), InputError) << bad;
}

}  // namespace
}  // namespace assay
