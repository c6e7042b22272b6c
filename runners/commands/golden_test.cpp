// `assay golden` as a process: what it refuses, how it ends by a signal, and checkpoints that are not the recorded
// ones.
#include <gtest/gtest.h>

#include <cstring>
#include <tuple>
#include <vector>

#include "cases/spec/export.hpp"
#include "runners/testing/runs.hpp"

namespace assay {
namespace {

using testing::Ended;
using testing::Runs;
using testing::shell;
namespace fs = std::filesystem;

TEST_F(Runs, GoldenRecordAndCheckStartEverythingOnlyWhenAskedTo) {
  expect_ends(shell(command("golden check")), 2, {"no cases were named", "'*' is everything"});
  expect_ends(shell(command("golden record")), 2, {"no cases were named", "'*' is everything", "--missing"});
  expect_ends(shell(command("golden record --missing")), 0, {"nothing to record"});
  expect_ends(shell(command("golden list")), 0, {"0 not current"});
}

// `assay golden` with an original that says that it has started, and hangs.
class GoldenSignals : public Runs {
 protected:
  GoldenSignals() {
    fs::create_directories(root() / "golden/record");
    fs::create_directories(scratch());
    write_file(root() / "golden/record/record.py", "");
    write_file(root() / "original", "#!/bin/sh\necho $$ > " + shell_quoted((root() / "partly").string()) + "\nmv " +
                                        shell_quoted((root() / "partly").string()) + " " +
                                        shell_quoted(number().string()) + "\nexec sleep 60\n");
    fs::permissions(root() / "original", fs::perms::owner_all);
  }
  fs::path scratch() const { return root() / "tmp"; }
  fs::path number() const { return root() / "number"; }  // of the original's process

  pid_t start_golden(const std::string& arguments) const {
    const std::string line = "exec env TMPDIR=" + shell_quoted(scratch().string()) +
                             " ASSAY_ORIGINALS_PYTHON=" + shell_quoted((root() / "original").string()) + " " +
                             command("golden " + arguments) + " > " + shell_quoted((root() / "console").string()) +
                             " 2>&1";
    const pid_t child = fork();
    if (child == 0) {
      signal(SIGINT, SIG_DFL);  // a background job ignores it, and so would what it starts
      execl("/bin/sh", "sh", "-c", line.c_str(), nullptr);
      _exit(127);
    }
    return child;
  }
  // The number of the original that was started, 0 if none was.
  pid_t original() const {
    for (int i = 0; i < 300; ++i) {
      if (fs::exists(number())) return std::stoi(read_file(number()));
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    return 0;
  }
  static bool is_running(pid_t process) {
    const fs::path stat = "/proc/" + std::to_string(process) + "/stat";
    if (kill(process, 0) != 0 || !fs::exists(stat)) return false;
    const std::string text = read_file(stat);
    return text[text.rfind(')') + 2] != 'Z';
  }
  static bool ends(pid_t process) {
    for (int i = 0; i < 200 && is_running(process); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    return !is_running(process);
  }
};

TEST_F(GoldenSignals, EndItWith3AndLeaveNothingBehind) {
  for (const auto& [subcommand, signal, text] : {std::tuple{"check mamba", SIGTERM, "interrupted by SIGTERM"},
                                                 {"record mamba", SIGINT, "interrupted by SIGINT"}}) {
    fs::remove(number());
    const pid_t assay = start_golden(subcommand);
    const pid_t original = this->original();
    ASSERT_NE(original, 0) << read_file(root() / "console");
    EXPECT_FALSE(fs::is_empty(scratch())) << "it exports into a scratch folder";
    kill(assay, signal);
    EXPECT_EQ(wait_for(assay), 3) << subcommand;
    EXPECT_FALSE(is_running(original)) << subcommand;
    EXPECT_TRUE(fs::is_empty(scratch())) << subcommand;
    EXPECT_FALSE(fs::exists(root() / "golden/pending"));
    const std::string console = read_file(root() / "console");
    EXPECT_NE(console.find(text), std::string::npos) << console;
  }
}

TEST_F(GoldenSignals, AKilledOneTakesTheOriginalWithIt) {
  const pid_t assay = start_golden("record mamba");
  const pid_t original = this->original();
  ASSERT_NE(original, 0) << read_file(root() / "console");
  kill(assay, SIGKILL);
  EXPECT_EQ(wait_for(assay), 128 + SIGKILL);
  EXPECT_TRUE(ends(original));
}

// The small config with untied weights in a folder, and its goldens.
class CheckpointRuns : public Runs {
 protected:
  CheckpointRuns() {
    const fs::path file = root() / "cases/models/mamba/small.config.json";
    nlohmann::json document = read_json(file);
    document["config"]["tie_word_embeddings"] = false;
    export_model(parse_config(document, file), root() / "checkpoint");
    document["weights"] = {{"kind", "checkpoint"}, {"directory", (root() / "checkpoint").string()}};
    write_file(file, document.dump());
    const ModelConfig config = read_config(file);
    for (const char* input : {"a", "b"}) {
      const golden::Golden golden = testing::recorded(testing::tiny_subject(), config, input);
      write_file(golden::golden_file(root(), golden.model, golden.config, golden.input, golden.kind),
                 golden::format(golden));
    }
  }
  void overwrite_row(const std::string& name, size_t row, float value) const {
    constexpr size_t kWidth = 12;
    const fs::path file = root() / "checkpoint/model.safetensors";
    std::string bytes = read_file(file);
    uint64_t length = 0;
    std::memcpy(&length, bytes.data(), sizeof length);
    const auto header = nlohmann::json::parse(bytes.substr(8, length));
    const auto begin = header.at(name).at("data_offsets").at(0).get<size_t>();
    const std::vector<float> values(kWidth, value);
    std::memcpy(bytes.data() + 8 + length + begin + 4 * kWidth * row, values.data(), 4 * kWidth);
    write_file(file, bytes);
  }
};

TEST_F(CheckpointRuns, AnotherCheckpointIsStaleAndNotAWrongEngine) {
  expect_ends(run("mamba"), 0, {"PASS"});
  expect_ends(shell(command("golden list")), 0, {"0 not current"});
  constexpr size_t kUnused = 22;  // a token of no input: no output moves
  overwrite_row("backbone.embeddings.weight", kUnused, 123);
  overwrite_row("lm_head.weight", 0, 0);
  const std::vector<std::string> texts{"backbone.embeddings.weight", "recorded from another checkpoint"};
  expect_ends(run("mamba"), 1, texts);
  for (const auto& [id, row] : rows()) EXPECT_EQ(row.status, Status::kStale) << id << ": " << row.reason;
  EXPECT_EQ(rows().size(), 4U);
  expect_ends(shell(command("golden list")), 1, texts);
}

TEST_F(CheckpointRuns, ARowThatNoInputUsesIsSeenToo) {
  overwrite_row("backbone.embeddings.weight", 22, 0);
  run("--case mamba/logits.a");
  EXPECT_EQ(rows().at("mamba/logits.a").status, Status::kStale) << rows().at("mamba/logits.a").reason;
}

TEST_F(CheckpointRuns, WhatIsNotThereIsNotLookedAt) {
  fs::rename(root() / "checkpoint", root() / "elsewhere");
  expect_ends(shell(command("golden list")), 0, {"committed", "not looked at", "no folder"});
  run("--case mamba/logits.a");
  EXPECT_EQ(rows().at("mamba/logits.a").status, Status::kError) << rows().at("mamba/logits.a").reason;
}

}  // namespace
}  // namespace assay
