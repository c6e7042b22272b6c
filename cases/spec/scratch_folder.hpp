// ScratchFolder: a temporary folder that is gone when its owner is.
#pragma once

#include <sys/types.h>

#include <filesystem>

#include "cases/spec/error.hpp"

namespace assay {

// No temporary folder, or no space in it: no fault of what is tested.
class ScratchError : public HarnessError {
 public:
  using HarnessError::HarnessError;
};

class ScratchFolder {
 public:
  // Below TMPDIR, or /tmp. ScratchError when it cannot be made.
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// The folders that a process left when it was killed. Call it when the process is gone.
void remove_scratch_of(pid_t process);

}  // namespace assay
