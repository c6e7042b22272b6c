#include "golden/child.hpp"

#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <stdexcept>

#include "cases/spec/error.hpp"

namespace assay::golden {
namespace {

TEST(RunChild, GivesLinesOfBothStreamsAndTheExitCode) {
  std::vector<std::string> lines;
  const ChildResult result = run_child({"/bin/sh", "-c", "echo one; echo two >&2; printf last; exit 7"}, {},
                                       [&](const std::string& line) { lines.push_back(line); });
  EXPECT_EQ(result.exit_code, 7);
  EXPECT_EQ(lines, (std::vector<std::string>{"one", "two", "last"}));
  EXPECT_EQ(result.tail, lines);
}

TEST(RunChild, KeepsOnlyTheLastLines) {
  const ChildResult result =
      run_child({"/bin/sh", "-c", "i=0; while [ $i -lt 100 ]; do echo $i; i=$((i+1)); done"}, {}, nullptr);
  EXPECT_EQ(result.tail.size(), 20u);
  EXPECT_EQ(result.tail.back(), "99");
}

TEST(RunChild, AddsToTheEnvironment) {
  const ChildResult result =
      run_child({"/bin/sh", "-c", "echo $ASSAY_TEST $HOME"}, {{"ASSAY_TEST", "yes"}, {"HOME", "h"}}, nullptr);
  EXPECT_EQ(result.tail, std::vector<std::string>{"yes h"});
}

TEST(RunChild, TellsASignalFromAnExit) {
  const ChildResult result = run_child({"/bin/sh", "-c", "kill -TERM $$"}, {}, nullptr);
  EXPECT_EQ(result.exit_code, -1);
  EXPECT_EQ(result.signal, SIGTERM);
}

TEST(RunChild, KillsTheChildWhenTheReaderThrows) {
  const auto start = std::chrono::steady_clock::now();
  EXPECT_THROW(run_child({"/bin/sh", "-c", "echo go; exec sleep 60"}, {},
                         [](const std::string&) { throw std::runtime_error("enough"); }),
               std::runtime_error);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

TEST(RunChild, RefusesAProgramThatIsNotThere) {
  EXPECT_THROW(run_child({"/no/such/interpreter"}, {}, nullptr), HarnessError);
}

}  // namespace
}  // namespace assay::golden
