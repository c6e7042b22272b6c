// InputFile: a regular file that is read by position, piece by piece, while a run goes on. It is opened once and never
// mapped: a file that is cut short under a reader is an error here, and would be a signal there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <filesystem>
#include <string>

namespace assay {

class InputFile {
 public:
  // InputError naming the path: cannot be opened, or is a folder, a pipe, a device.
  explicit InputFile(const std::filesystem::path& path);
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;
  ~InputFile();

  const std::string& path() const { return path_; }
  uint64_t size() const { return size_; }  // when it was opened

  // Bytes [offset, offset + bytes). `what` names them in a message: "tensor 'norm.weight'". InputError when they are
  // not all there, or the file was removed, resized or written to since it was opened: what was read may then be of
  // two files. May be called by several threads at once.
  void read(uint64_t offset, std::byte* into, uint64_t bytes, const std::string& what) const;

 private:
  void check_unchanged(const std::string& what) const;

  std::string path_;
  int descriptor_ = -1;
  uint64_t size_ = 0;
  bool has_name_ = true;  // false for a file that had no name when it was opened, which is then no news
  std::timespec written_{};
};

}  // namespace assay
