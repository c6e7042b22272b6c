// A child process whose lines of output are read as they come.
#pragma once

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

// Runs arguments[0] (a path) and waits for it. environment: added to, or replacing, the present one's. line: called
// with each line of output; if it throws, the child is killed and the exception goes on. HarnessError if it cannot be
// started.
ChildResult run_child(const std::vector<std::string>& arguments,
                      const std::vector<std::pair<std::string, std::string>>& environment,
                      const std::function<void(const std::string&)>& line);

}  // namespace assay::golden
