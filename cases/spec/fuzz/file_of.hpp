// A file in memory that holds what the fuzzer made, for readers that take a path. (It has no name of its own; the path
// leads to it while it lives.)
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>

namespace assay::fuzz {

class FileOf {
 public:
  FileOf(const uint8_t* bytes, size_t count) : descriptor_(::memfd_create("fuzz", MFD_CLOEXEC)) {
    for (size_t at = 0; at < count;) {
      const ssize_t written = ::write(descriptor_, bytes + at, count - at);
      if (written <= 0) std::abort();
      at += static_cast<size_t>(written);
    }
  }
  FileOf(const FileOf&) = delete;
  FileOf& operator=(const FileOf&) = delete;
  ~FileOf() { ::close(descriptor_); }

  std::filesystem::path path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

 private:
  int descriptor_;
};

}  // namespace assay::fuzz
