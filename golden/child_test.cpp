#include "golden/child.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <stdexcept>
#include <thread>

#include "cases/spec/error.hpp"

namespace assay::golden {
namespace {

// Neither running nor a zombie of ours: within ten seconds nothing has that number.
bool is_gone(pid_t process) {
  for (int i = 0; i < 200 && ::kill(process, 0) == 0; ++i) {
    // In a container without an init a killed orphan stays a zombie.
    std::FILE* status = std::fopen(("/proc/" + std::to_string(process) + "/stat").c_str(), "r");
    char state = 'Z';
    if (status) {
      if (std::fscanf(status, "%*d %*s %c", &state) != 1) state = 'Z';
      std::fclose(status);
    }
    if (state == 'Z') return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return ::kill(process, 0) != 0;
}

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

TEST(RunChild, StopKillsTheChildAndWhatItStarted) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  std::vector<pid_t> started;
  const auto on_line = [&](const std::string& line) {
    started.push_back(std::stoi(line));
    if (started.size() == 2) {
      EXPECT_EQ(::write(ends[1], "x", 1), 1);
    }
  };
  EXPECT_THROW(run_child({"/bin/sh", "-c", "echo $$; sleep 60 & echo $!; wait"}, {}, on_line, ends[0]), Stopped);
  ASSERT_EQ(started.size(), 2u);
  for (const pid_t process : started) EXPECT_TRUE(is_gone(process)) << process;
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(RunChild, TheChildDoesNotOutliveAKilledParent) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const pid_t parent = ::fork();
  if (parent == 0) {
    run_child({"/bin/sh", "-c", "echo $$; exec sleep 60"}, {}, [&](const std::string& line) {
      const pid_t child = std::stoi(line);
      if (::write(ends[1], &child, sizeof child) != sizeof child) ::_exit(1);
    });
    ::_exit(0);
  }
  pid_t child = 0;
  ASSERT_EQ(::read(ends[0], &child, sizeof child), static_cast<ssize_t>(sizeof child));
  ::kill(parent, SIGKILL);
  ::waitpid(parent, nullptr, 0);
  EXPECT_TRUE(is_gone(child));
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(RunChild, SignalsThatTheParentBlocksReachTheChild) {
  sigset_t blocked, before;
  ::sigemptyset(&blocked);
  ::sigaddset(&blocked, SIGTERM);
  ::sigprocmask(SIG_BLOCK, &blocked, &before);
  const ChildResult result = run_child({"/bin/sh", "-c", "kill -TERM $$; exit 3"}, {}, nullptr);
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  EXPECT_EQ(result.signal, SIGTERM);
}

TEST(RunChild, RefusesAProgramThatIsNotThere) {
  EXPECT_THROW(run_child({"/no/such/interpreter"}, {}, nullptr), HarnessError);
}

}  // namespace
}  // namespace assay::golden
