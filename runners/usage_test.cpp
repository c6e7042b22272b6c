// What the command line refuses, and the advice it gives.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <sstream>

#include "cases/spec/op_forms.hpp"
#include "runners/testing/runs.hpp"

namespace assay {
namespace {

using testing::Ended;
using testing::Runs;
using testing::shell;
namespace fs = std::filesystem;

TEST_F(Runs, ATimeoutIsASensibleNumberOfSeconds) {
  for (const char* bad : {"nan", "inf", "1e300", "0", "-1", "604801"})
    expect_ends(run(std::string("mamba --timeout ") + bad), 2, {"--timeout"});
  EXPECT_EQ(run("mamba --timeout 604800").code, 0);
}

TEST_F(Runs, ASubjectThatIsSlowToOpenIsNotAWrongSubject) {
  expect_ends(run("mamba --timeout 1", "open"), 3, {"opening it took more than 1 s", "--timeout"});
}

TEST_F(Runs, TheTimeoutHoldsForAllRepetitions) {
  const auto begin = std::chrono::steady_clock::now();
  const Ended ended = run("--case mamba/logits.a --repeat 1000000 --timeout 2");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
  EXPECT_EQ(ended.code, 1) << ended.text;
  EXPECT_EQ(rows().at("mamba/logits.a").status, Status::kTimeout);
  EXPECT_NE(rows().at("mamba/logits.a").reason.find("of 1000000"), std::string::npos) << ended.text;
}

TEST_F(Runs, AFullStandardOutputEndsWith3) {
  const auto full = [](const std::string& command) { return shell("{ " + command + " > /dev/full; }"); };
  const std::vector<std::string> text{"standard output: No space left on device"};
  expect_ends(full(tiny("mamba")), 3, text);
  for (const char* arguments : {"list", "show mamba/logits.a", "list --models", "run --help"})
    expect_ends(full(command(arguments)), 3, text);
  EXPECT_EQ(rows().size(), 4U) << "the rows are on disk all the same";
  for (int i = 0; i < 200; ++i)
    fs::copy_file(root() / "cases/models/mamba/logits.a.json",
                  root() / fmt::format("cases/models/mamba/logits.copy{}.json", i));
  expect_ends(full(command("list")), 3, text);
}

TEST_F(Runs, AFileOfSelectorsIsARegularFile) {
  expect_ends(shell("timeout 10 " + command("list @/dev/zero")), 2, {"/dev/zero", "regular file"});
  expect_ends(shell(command("list @nofile")), 2, {"@nofile", "no such file", "one selector a line"});
  write_file(root() / "big", std::string((1 << 20) + 1, 'x'));
  expect_ends(shell(command("list @" + shell_quoted((root() / "big").string()))), 2, {"1 MiB"});
  write_file(root() / "some", "mamba/logits.a  # one\n");
  expect_ends(shell(command("list @" + shell_quoted((root() / "some").string()))), 0, {"mamba/logits.a"});
}

TEST_F(Runs, WhatIsNoRegularFileIsRefusedAndNamed) {
  const fs::path pipe = root() / "pipe", models = root() / "cases/models/mamba";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const auto soon = [](const std::string& line) { return shell("timeout -s KILL 20 " + line); };
  expect_ends(soon(tiny("--rerun-failed " + shell_quoted(pipe.string()))), 2, {"pipe: is not a regular file"});
  fs::create_symlink("/dev/zero", models / "cache.zero.json");
  fs::create_symlink(pipe, models / "odd.config.json");
  expect_ends(soon(command("list")), 2,
              {"mamba/cache.zero", "mamba/odd.config", "BROKEN", "odd.config.json: is not a regular file"});
  expect_ends(soon(command("run '*'")), 2, {"cache.zero.json: is not a regular file"});
}

TEST_F(Runs, TheVersionIsPrinted) {
  expect_ends(shell(shell_quoted(ASSAY_EXECUTABLE) + " --version"), 0, {"assay 0."});
}

// What the built-in subjects declare can be asked for by name.
TEST_F(Runs, EveryFormOfTheReferenceIsKnown) {
  std::istringstream lines(shell(command("list --subjects")).text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string op, form;
    if (!line.starts_with("   ") || !(words >> op) || !op.ends_with(":")) continue;
    op.pop_back();
    if (op == "step_graph") continue;  // of the fast path; no op
    while (words >> form) {
      if (form.ends_with(",")) form.pop_back();
      EXPECT_NO_THROW(check_form(op, form, "--subjects"));
    }
  }
}

TEST_F(Runs, AModelIsNotACase) {
  expect_ends(shell(command("show mamba")), 2, {"'mamba' is a model, not a case", "assay list mamba"});
}

TEST_F(Runs, AGlobThatMatchesNothingNamesTheNearest) {
  expect_ends(shell(command("list 'mamba/cahce.*'")), 2, {"matches no case", "nearest: mamba/cache.*"});
}

TEST_F(Runs, AMinimalGapIsASensibleNumber) {
  for (const char* bad : {"nan", "inf", "0", "-1", "11"})
    expect_ends(shell(command(std::string("fit mamba/small --min-gap ") + bad)), 2, {"--min-gap"});
}

TEST_F(Runs, WrongOptionsComeWithAdvice) {
  expect_ends(shell(command("run mamba --out ''")), 2, {"--out", "out/latest"});
  expect_ends(run("mamba --fail-on SKIPP"), 2, {"unknown status 'SKIPP'", "nearest: SKIP"});
  expect_ends(run("--case mamba/logits.a --shard 2/2"), 2, {"holds none of the 1 selected", "at most 1 shards"});
  const std::string subject = shell_quoted(ASSAY_TINY_SUBJECT);
  expect_ends(run("mamba --subject " + subject), 2, {"given twice"});
}

TEST_F(Runs, OnlyCloseNamesAreSuggested) {
  const Ended ended = shell(command("list nosuch"));
  expect_ends(ended, 2, {"no model or case 'nosuch'", "models: ", "model:", "assay list"});
  EXPECT_EQ(ended.text.find("nearest"), std::string::npos) << ended.text;
  expect_ends(shell(command("list mambo")), 2, {"nearest: mamba"});
}

TEST_F(Runs, ALibraryThatWasCutShortIsNamed) {
  const fs::path library = root() / "cut.so";
  fs::copy_file(ASSAY_TINY_SUBJECT, library);
  fs::resize_file(library, 3000);
  const std::string subject = " --subject " + shell_quoted(library.string());
  const std::string root_of_shapes = " --root " + shell_quoted(ASSAY_ROOT);
  expect_ends(shell(command("run mamba" + subject)), 2, {"cut.so", "is cut short", "copy it again"});
  expect_ends(shell(shell_quoted(ASSAY_EXECUTABLE) + " bench ssd" + subject + root_of_shapes), 2, {"is cut short"});
}

// Before anything is timed, and before a GPU is asked for.
TEST_F(Runs, WhatBenchIsGivenIsCheckedFirst) {
  const fs::path files = root() / "runners/bench", pipe = root() / "pipe";
  fs::create_directories(files);
  fs::copy_file(fs::path(ASSAY_ROOT) / "runners/bench/shapes.json", files / "shapes.json");
  write_file(files / "peers.json", "{");
  expect_ends(shell(command("bench --peers")), 2, {"peers.json", "truncated"});
  expect_ends(shell(command("bench mamba3")), 2, {"no kernel or model 'mamba3'", "mamba2"});
  expect_ends(shell(command("bench --json ''")), 2, {"--json", "is empty"});
  expect_ends(shell(command("bench --json /tmp")), 2, {"--json", "'/tmp' is not a regular file"});
  expect_ends(shell(command("bench --json /proc/x")), 3, {"cannot write", "choose another folder for --json"});
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  expect_ends(shell(command("bench --json " + shell_quoted(pipe.string()))), 2, {"is not a regular file"});
  EXPECT_TRUE(fs::is_fifo(pipe)) << "it was replaced";
}

TEST_F(Runs, AMisspeltFieldIsNamedWithTheNearest) {
  const fs::path file = root() / "cases/models/mamba/logits.a.json";
  nlohmann::json document = read_json(file);
  document["teir"] = document["tier"];
  document.erase("tier");
  write_file(file, document.dump());
  expect_ends(shell(command("list")), 2, {"/teir", "did you mean \"tier\"?"});
}

TEST_F(Runs, AVariantIsLowerCase) {
  fs::copy_file(root() / "cases/models/mamba/logits.a.json", root() / "cases/models/mamba/logits.A2.json");
  expect_ends(shell(command("list")), 2, {"logits.A2.json", "lower case"});
}

TEST_F(Runs, TheHintOfAMissingGoldenNamesItsConfig) {
  fs::remove(root() / "golden/models/mamba/small.a.f32.json");
  expect_ends(run("--case mamba/logits.a"), 1, {"NO_GOLDEN", "assay golden record config:mamba/small --missing"});
}

TEST_F(Runs, NothingPendingIsNoError) {
  expect_ends(shell(command("golden review")), 0, {"nothing is pending"});
  expect_ends(shell(command("golden accept")), 0, {"nothing is pending"});
}

}  // namespace
}  // namespace assay
