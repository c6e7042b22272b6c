// A folder for one test, removed with what it holds.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include "cases/spec/error.hpp"

namespace assay::testing {

class TemporaryFolder {
 public:
  // Below TMPDIR, or /tmp. HarnessError when it cannot be made.
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "assay-test-XXXXXX").string();
    if (!::mkdtemp(pattern.data())) throw HarnessError(pattern, "cannot make a folder");
    path_ = pattern;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::permissions(path_, std::filesystem::perms::owner_all, ignored);  // a test may have taken them
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace assay::testing
