// TorchArchive: the zip container that torch.save writes since 1.6. One folder holds data.pkl (a pickle that names the
// tensors), data/<number> (the bytes of a storage), version, byteorder and a few notes of torch's own.
//
// Opening reads the directory at the end and the header in front of every entry, and holds the two against each other;
// no entry's bytes are touched but version and byteorder. Only what torch writes is read: entries that are stored as
// they are, within the file, each with a place of its own, names that stay below the one folder. A compressed entry is
// refused by name, so nothing here can grow beyond the file's own size.
// source  APPNOTE.TXT 6.3.10 (PKWARE), sections 4.3 and 4.5.3
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cases/spec/input_file.hpp"

namespace assay {

class TorchArchive {
 public:
  struct Entry {
    std::string name;     // below the folder: "data.pkl", "data/0"
    uint64_t header = 0;  // where its local header begins
    uint64_t data = 0;    // where its bytes begin
    uint64_t size = 0;
    uint32_t crc = 0;  // 0: not recorded, as torch.serialization.set_crc32_options(False) leaves it
    mutable std::atomic<bool> is_verified = false;  // its CRC-32 was right when it was first read
  };

  // InputError naming the file, and the entry where there is one: everything said above; no data.pkl; a TorchScript
  // archive; torch's format before 1.6; big-endian; a version that is not 1 to 10.
  explicit TorchArchive(const std::filesystem::path& file);

  const std::string& path() const { return file_.path(); }
  // Null where there is no such entry.
  const Entry* find(std::string_view name) const;
  std::vector<std::string> names() const;

  // A whole entry. InputError when it is larger than `limit`, or its CRC-32 is another than the archive says.
  std::string read_text(const Entry& entry, uint64_t limit) const;
  // Bytes [begin, begin + count) of an entry, which must have them; `what` names them in a message. The CRC-32 covers
  // the whole entry, so the first read of a part reads all of it once, a piece at a time.
  void read(const Entry& entry, uint64_t begin, std::byte* into, uint64_t count, const std::string& what) const;

 private:
  struct Directory {
    uint64_t begin = 0, bytes = 0, entries = 0;
  };
  Directory find_directory() const;
  void read_directory(const Directory& directory);
  void read_local_header(Entry& entry, const std::string& full_name, uint64_t end_of_data) const;
  void check_places() const;
  void check_kind() const;
  void verify(const Entry& entry, uint32_t crc, const std::string& what) const;
  std::string where(const Entry& entry) const { return path() + " entry '" + folder_ + "/" + entry.name + "'"; }

  InputFile file_;
  std::string folder_;
  std::map<std::string, std::unique_ptr<Entry>, std::less<>> entries_;
};

}  // namespace assay
