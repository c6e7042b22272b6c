// `assay run` as a process, on a small checkout of its own: the fixture of the tests of runs.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <map>
#include <string>
#include <thread>

#include "cases/spec/json.hpp"
#include "runners/console.hpp"
#include "runners/results.hpp"
#include "runners/testing/fixture.hpp"

namespace assay::testing {

namespace fs = std::filesystem;

struct Ended {
  int code = -1;
  std::string text;  // standard output and standard error
};

inline Ended shell(const std::string& command) {
  std::FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  Ended ended;
  char block[4096];
  while (const size_t count = std::fread(block, 1, sizeof block, pipe)) ended.text.append(block, count);
  const int status = pclose(pipe);
  ended.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return ended;
}

class Runs : public ::testing::Test {
 protected:
  Runs() { write_checkout(root()); }

  const fs::path& root() const { return folder.path(); }
  fs::path out() const { return root() / "out"; }
  fs::path results() const { return out() / kResultsName; }
  std::string command(const std::string& arguments) const {
    return shell_quoted(ASSAY_EXECUTABLE) + " " + arguments + " --root " + shell_quoted(root().string());
  }
  std::string tiny(const std::string& arguments) const {
    return command("run --subject " + shell_quoted(ASSAY_TINY_SUBJECT) + " --out " + shell_quoted(out().string()) +
                   " " + arguments);
  }
  Ended run(const std::string& arguments, const std::string& fault = "") const {
    return shell("ASSAY_TINY_FAULT=" + fault + " " + tiny(arguments));
  }
  std::map<std::string, Verdict> rows() const {
    std::map<std::string, Verdict> result;
    for (const Verdict& row : read_results(results()).rows) result[row.case_id] = row;
    return result;
  }
  // A second family, which the tiny subject does not have: its row is SKIP(no_model).
  void add_mamba2() const {
    const fs::path from = fs::path(ASSAY_ROOT) / "cases/models/mamba2/tiny.config.json";
    const fs::path to = root() / "cases/models/mamba2";
    fs::create_directories(to);
    fs::copy_file(from, to / "tiny.config.json");
    write_file(to / "logits.a.json", R"({"schema": "assay.case/1", "config": "tiny", "tier": "smoke",
      "dtype": "float32", "why": "For tests of the runner.", "legs": [{"name": "one", "rows": [{"input": "one"}]}]})");
  }
  // It must end with the code, and say each of the texts.
  void expect_ends(const Ended& ended, int code, const std::vector<std::string>& texts) const {
    EXPECT_EQ(ended.code, code) << ended.text;
    for (const std::string& text : texts)
      EXPECT_NE(ended.text.find(text), std::string::npos) << text << "\n" << ended.text;
  }
  // Started in the background; ended by wait_for.
  pid_t start(const std::string& arguments, const std::string& fault) const {
    const std::string line = "exec env ASSAY_TINY_FAULT=" + fault + " " + tiny(arguments) + " > " +
                             shell_quoted((root() / "console").string()) + " 2>&1";
    const pid_t child = fork();
    if (child == 0) {
      execl("/bin/sh", "sh", "-c", line.c_str(), nullptr);
      _exit(127);
    }
    return child;
  }
  // Until `text` stands in the results: the run has come that far.
  bool appears(const std::string& text) const {
    for (int i = 0; i < 300; ++i) {
      if (fs::exists(results()) && read_file(results()).find(text) != std::string::npos) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    return false;
  }
  static int wait_for(pid_t child) {
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

  Folder folder;
};

}  // namespace assay::testing
