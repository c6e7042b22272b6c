#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "cases/spec/error.hpp"
#include "cases/spec/json.hpp"

namespace assay {

namespace {

std::string errno_text(int code) { return std::generic_category().message(code); }

// Closes and removes the unfinished file, then reports: nothing half written is left behind.
[[noreturn]] void fail_write(int descriptor, const std::filesystem::path& temporary, const std::filesystem::path& file,
                             const char* action, int code) {
  if (descriptor >= 0) ::close(descriptor);
  ::unlink(temporary.c_str());
  throw HarnessError(file.string(), fmt::format("cannot {}: {}", action, errno_text(code)));
}

}  // namespace

void write_file(const std::filesystem::path& file, std::string_view text) {
  write_file(file, [&](const WritePart& write) { write(text); });
}

void write_file(const std::filesystem::path& file, const std::function<void(const WritePart&)>& fill) {
  const std::filesystem::path folder = file.has_parent_path() ? file.parent_path() : std::filesystem::path(".");
  const std::filesystem::path temporary = folder / fmt::format(".{}.{}.part", file.filename().string(), ::getpid());
  const int descriptor = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor < 0) {
    const int code = errno;
    throw HarnessError(folder.string(),
                       fmt::format("cannot write {} there: {}", file.filename().string(), errno_text(code)),
                       code == ENOENT ? "create the folder first" : "choose a folder that can be written");
  }
  bool has_failed = false;
  const WritePart write = [&](std::string_view part) {
    while (!part.empty()) {
      const ssize_t count = ::write(descriptor, part.data(), part.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) {
        has_failed = true;
        fail_write(descriptor, temporary, file, "write", errno);
      }
      part.remove_prefix(static_cast<size_t>(count));
    }
  };
  try {
    fill(write);
  } catch (...) {
    if (!has_failed) {
      ::close(descriptor);
      ::unlink(temporary.c_str());
    }
    throw;
  }
  if (::fsync(descriptor) != 0) fail_write(descriptor, temporary, file, "flush to disk", errno);
  if (::close(descriptor) != 0) fail_write(-1, temporary, file, "close", errno);
  if (::rename(temporary.c_str(), file.c_str()) != 0) fail_write(-1, temporary, file, "put into place", errno);
  // The rename itself must outlive a power cut; a file system that cannot sync a folder is no reason to fail.
  if (const int folder_descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
      folder_descriptor >= 0) {
    ::fsync(folder_descriptor);
    ::close(folder_descriptor);
  }
}

}  // namespace assay
