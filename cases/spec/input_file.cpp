#include "cases/spec/input_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "cases/spec/error.hpp"

namespace assay {

namespace {
std::string errno_text(int code) { return std::generic_category().message(code); }
}  // namespace

InputFile::InputFile(const std::filesystem::path& path) : path_(path.string()) {
  // Without O_NONBLOCK, opening a named pipe would wait for a writer.
  descriptor_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor_ < 0) throw InputError(path_, "cannot be opened: " + errno_text(errno));
  struct stat about {};
  if (::fstat(descriptor_, &about) != 0 || !S_ISREG(about.st_mode)) {
    ::close(descriptor_);
    throw InputError(path_, "is not a regular file");
  }
  size_ = static_cast<uint64_t>(about.st_size);
  has_name_ = about.st_nlink > 0;
  written_ = about.st_mtim;
}

InputFile::~InputFile() { ::close(descriptor_); }

void InputFile::read(uint64_t offset, std::byte* into, uint64_t bytes, const std::string& what) const {
  if (offset > size_ || bytes > size_ - offset)
    throw InputError(path_, fmt::format("{} ends at byte {} of {}", what, offset + bytes, size_));
  while (bytes > 0) {
    const ssize_t got = ::pread(descriptor_, into, bytes, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw InputError(path_, what + " cannot be read: " + errno_text(errno));
    if (got == 0) throw InputError(path_, what + " ends early: the file was cut short");
    offset += static_cast<uint64_t>(got);
    into += got;
    bytes -= static_cast<uint64_t>(got);
  }
  check_unchanged(what);
}

// After the bytes were read: what was changed while they were read counts too.
void InputFile::check_unchanged(const std::string& what) const {
  struct stat about {};
  if (::fstat(descriptor_, &about) != 0) throw InputError(path_, what + " cannot be read: " + errno_text(errno));
  const auto refuse = [&](const std::string& how) {
    throw InputError(path_, what + " cannot be trusted: the file was " + how + " after it was opened",
                     "leave the files of a checkpoint alone while they are in use");
  };
  const auto size = static_cast<uint64_t>(about.st_size);
  if (size != size_) refuse(fmt::format("resized from {} to {} bytes", size_, size));
  if (has_name_ && about.st_nlink == 0) refuse("removed or replaced");
  if (about.st_mtim.tv_sec != written_.tv_sec || about.st_mtim.tv_nsec != written_.tv_nsec) refuse("written to");
}

}  // namespace assay
