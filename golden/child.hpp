// A child process whose lines of output are read as they come.
#pragma once

#include <exception>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace assay::golden {

struct ChildResult {
  int exit_code = 0;              // -1 if a signal ended it
  int signal = 0;                 // that signal
  std::vector<std::string> tail;  // its last lines, standard output and standard error together
};

// What run_child leaves by when it was told to stop. Not an Error: whoever gave the descriptor knows why.
class Stopped : public std::exception {
 public:
  const char* what() const noexcept override { return "stopped"; }
};

// Runs arguments[0] (a path) and waits for it. environment: added to, or replacing, the present one's. line: called
// with each line of output; if it throws, the child is killed and the exception goes on. stop: when this descriptor is
// readable the child is killed and Stopped is thrown; -1: never. The child has a process group of its own, which dies
// with it, no blocked signals, and is killed when the calling thread ends in whatever way. HarnessError if it cannot be
// started.
ChildResult run_child(const std::vector<std::string>& arguments,
                      const std::vector<std::pair<std::string, std::string>>& environment,
                      const std::function<void(const std::string&)>& line, int stop = -1);

}  // namespace assay::golden
