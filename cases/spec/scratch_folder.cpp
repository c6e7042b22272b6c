#include "cases/spec/scratch_folder.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <system_error>

namespace assay {

namespace fs = std::filesystem;

namespace {

std::string prefix_of(pid_t process) { return fmt::format("assay_{}_", process); }

}  // namespace

ScratchFolder::ScratchFolder() {
  std::error_code failure;
  const fs::path base = fs::temp_directory_path(failure);
  if (failure) throw ScratchError("temporary folder", failure.message(), "set TMPDIR to a folder that can be written");
  std::string name = (base / (prefix_of(getpid()) + "XXXXXX")).string();
  if (!mkdtemp(name.data()))
    throw ScratchError(base.string(), fmt::format("no folder can be made in it: {}", std::strerror(errno)),
                       "set TMPDIR to a folder that can be written");
  path_ = name;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  fs::permissions(path_, fs::perms::owner_all, ignored);  // a test may have taken them
  fs::remove_all(path_, ignored);
}

void remove_scratch_of(pid_t process) {
  std::error_code ignored;
  const fs::path base = fs::temp_directory_path(ignored);
  if (ignored) return;
  for (const fs::directory_entry& entry : fs::directory_iterator(base, ignored))
    if (entry.path().filename().string().starts_with(prefix_of(process))) fs::remove_all(entry.path(), ignored);
}

}  // namespace assay
