// Invocation: how this process was called, shared by all commands.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace assay {

enum ExitCode : int {
  kExitAllowed = 0,   // every status is allowed
  kExitVerdict = 1,   // a verdict failed
  kExitUsage = 2,     // bad usage or input, or nothing to run
  kExitHarness = 3,   // disk, output folder, child process, or the run was interrupted
  kExitSkipped = 77,  // all that was selected was skipped
};

struct Invocation {
  std::filesystem::path executable;    // this program; subjects and workers are looked for beside it
  std::vector<std::string> arguments;  // without the program's name
  std::string root_option;             // --root
  std::function<int()> action;         // set by the command that was chosen

  // The folder that holds cases/models: --root, $ASSAY_ROOT, else the first found walking up from the working folder,
  // then from the executable. InputError when there is none.
  std::filesystem::path root() const;
  // True where a repeat of the call finds another root unless it is told.
  bool root_is_chosen() const;
};

// The running program's own file.
std::filesystem::path executable_path();

}  // namespace assay
