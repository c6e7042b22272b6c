// The directory at the end of an archive, and the header in front of every entry.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "cases/spec/error.hpp"
#include "cases/spec/little_endian.hpp"
#include "cases/spec/printable.hpp"
#include "cases/spec/torch_archive.hpp"

namespace assay {

namespace {

constexpr uint64_t kEndBytes = 22, kLocatorBytes = 20, kEnd64Bytes = 56, kCentralBytes = 46, kLocalBytes = 30;
constexpr uint64_t kLargestDirectory = 64 << 20;  // some 800 000 entries
constexpr uint32_t kFull32 = 0xffffffff;          // "the value stands in the zip64 field"
constexpr uint16_t kFull16 = 0xffff;
constexpr uint16_t kEncrypted = 1, kDescriptor = 8;

// A zip64 field: 8 bytes for every value of the header that is full, in the order of the header.
class Zip64 {
 public:
  Zip64(std::string_view extra, const std::string& where) : where_(where) {
    while (extra.size() >= 4) {
      const uint64_t id = little_endian(extra, 0, 2), bytes = little_endian(extra, 2, 2);
      extra.remove_prefix(4);
      if (bytes > extra.size()) throw InputError(where, "has an extra field that is longer than its header");
      if (id == 1 && !field_) field_ = extra.substr(0, bytes);
      extra.remove_prefix(bytes);
    }
  }
  uint64_t value(uint64_t in_header) {
    if (in_header != kFull32 || !field_) return in_header;
    if (field_->size() < 8) throw InputError(where_, "has a zip64 field that lacks a value");
    const uint64_t wide = little_endian(*field_, 0, 8);
    field_->remove_prefix(8);
    return wide;
  }

 private:
  std::string where_;
  std::optional<std::string_view> field_;
};

std::string method_name(uint64_t method) {
  switch (method) {
    case 8:
      return "deflate";
    case 9:
      return "deflate64";
    case 12:
      return "bzip2";
    case 14:
      return "lzma";
    case 93:
      return "zstd";
    default:
      return fmt::format("method {}", method);
  }
}

void check_name(std::string_view name, const std::string& where) {
  if (name.empty()) throw InputError(where, "has no name");
  if (!is_printable_utf8(name)) throw InputError(where, "has a name that is no plain UTF-8 text");
  if (name.front() == '/' || name.find('\\') != name.npos)
    throw InputError(where, "has a name that is no relative path");
  for (size_t at = 0; at <= name.size();) {
    const size_t end = std::min(name.find('/', at), name.size());
    const std::string_view part = name.substr(at, end - at);
    if (part == ".." || part == ".") throw InputError(where, "has a name that leaves its folder");
    if (part.empty()) throw InputError(where, "has a name with an empty part: a folder, or no path");
    at = end + 1;
  }
}

}  // namespace

// The end record stands in the last 22 bytes: torch writes no comment behind it, and a search for it further up could
// be led to a second directory within the data.
TorchArchive::Directory TorchArchive::find_directory() const {
  std::string start(std::min<uint64_t>(file_.size(), 4), '\0');
  file_.read(0, reinterpret_cast<std::byte*>(start.data()), start.size(), "the beginning");
  if (start.size() >= 2 && start[0] == '\x80' && start[1] >= 2 && start[1] <= 5)
    throw InputError(path(), "is a bare pickle, torch's format before 1.6, which is not read",
                     "load it with torch and save it again");
  if (start.substr(0, 2) != "PK") throw InputError(path(), "is not an archive that torch.save wrote");
  std::string end(kEndBytes, '\0');
  if (file_.size() < kEndBytes) throw InputError(path(), "is too short for an archive: it was cut short");
  file_.read(file_.size() - kEndBytes, reinterpret_cast<std::byte*>(end.data()), kEndBytes, "the end record");
  if (end.substr(0, 4) != "PK\5\6")
    throw InputError(path(), "has no end record in its last 22 bytes",
                     "it was cut short, or something was appended to it");
  uint64_t record = file_.size() - kEndBytes;
  const uint64_t entries = little_endian(end, 10, 2), bytes = little_endian(end, 12, 4),
                 begin = little_endian(end, 16, 4);
  if (little_endian(end, 4, 2) != 0 || little_endian(end, 6, 2) != 0 || little_endian(end, 8, 2) != entries)
    throw InputError(path(), "is one of several volumes");
  if (little_endian(end, 20, 2) != 0) throw InputError(path(), "has an end record with a comment that is not there");
  Directory directory{begin, bytes, entries};

  std::string locator(kLocatorBytes, '\0');
  if (record >= kLocatorBytes + kEnd64Bytes) {
    file_.read(record - kLocatorBytes, reinterpret_cast<std::byte*>(locator.data()), kLocatorBytes, "the end record");
    if (locator.substr(0, 4) == "PK\6\7") {
      record -= kLocatorBytes + kEnd64Bytes;
      if (little_endian(locator, 8, 8) != record)
        throw InputError(path(), fmt::format("its zip64 locator says byte {}, and the zip64 record is at {}",
                                             little_endian(locator, 8, 8), record));
      std::string wide(kEnd64Bytes, '\0');
      file_.read(record, reinterpret_cast<std::byte*>(wide.data()), kEnd64Bytes, "the zip64 record");
      if (wide.substr(0, 4) != "PK\6\6" || little_endian(wide, 4, 8) != kEnd64Bytes - 12)
        throw InputError(path(), "its zip64 record is not one");
      directory = {little_endian(wide, 48, 8), little_endian(wide, 40, 8), little_endian(wide, 32, 8)};
      if (little_endian(wide, 16, 8) != 0 || little_endian(wide, 24, 8) != directory.entries)
        throw InputError(path(), "is one of several volumes");
      if ((begin != kFull32 && begin != directory.begin) || (bytes != kFull32 && bytes != directory.bytes) ||
          (entries != kFull16 && entries != directory.entries))
        throw InputError(path(), "its end record and its zip64 record differ");
    }
  }
  if (directory.bytes > record || directory.begin != record - directory.bytes)
    throw InputError(path(),
                     fmt::format("its directory, {} bytes from {} on, does not end where the end record begins, "
                                 "at {}",
                                 directory.bytes, directory.begin, record));
  if (directory.bytes > kLargestDirectory)
    throw InputError(path(),
                     fmt::format("its directory of {} bytes is larger than any checkpoint needs", directory.bytes));
  return directory;
}

void TorchArchive::read_directory(const Directory& directory) {
  std::string all(directory.bytes, '\0');
  file_.read(directory.begin, reinterpret_cast<std::byte*>(all.data()), all.size(), "the directory");
  std::string_view left = all;
  for (uint64_t number = 0; !left.empty(); ++number) {
    std::string where = fmt::format("{} entry {} of the directory", path(), number);
    if (number == directory.entries)
      throw InputError(path(), fmt::format("its directory holds more than the {} entries that it says", number));
    if (left.size() < kCentralBytes || left.substr(0, 4) != "PK\1\2") throw InputError(where, "is broken");
    const uint64_t flags = little_endian(left, 8, 2), method = little_endian(left, 10, 2),
                   name_bytes = little_endian(left, 28, 2), extra_bytes = little_endian(left, 30, 2),
                   comment_bytes = little_endian(left, 32, 2);
    if (name_bytes + extra_bytes + comment_bytes > left.size() - kCentralBytes)
      throw InputError(where, "is longer than the directory");
    const std::string name(left.substr(kCentralBytes, name_bytes));
    where = path() + " entry '" + printable(name) + "'";
    check_name(name, where);
    auto entry = std::make_unique<Entry>();
    const size_t slash = name.find('/');
    if (slash == name.npos) throw InputError(where, "is in no folder", "torch puts all entries into one");
    if (number == 0) folder_ = name.substr(0, slash);
    if (name.substr(0, slash) != folder_)
      throw InputError(where, "is not in the folder of the others, '" + folder_ + "'");
    entry->name = name.substr(slash + 1);
    if (entry->name == "constants.pkl" || entry->name.rfind("code/", 0) == 0)
      throw InputError(path(), "is a TorchScript archive, a program, which is not read",
                       "save the model's state_dict() with torch.save");
    if (flags & kEncrypted) throw InputError(where, "is encrypted");
    if (method != 0)
      throw InputError(where, "is compressed (" + method_name(method) + ")", "torch stores entries as they are");
    Zip64 zip64(left.substr(kCentralBytes + name_bytes, extra_bytes), where);
    entry->crc = static_cast<uint32_t>(little_endian(left, 16, 4));
    entry->size = zip64.value(little_endian(left, 24, 4));
    const uint64_t stored = zip64.value(little_endian(left, 20, 4));
    entry->header = zip64.value(little_endian(left, 42, 4));
    if (stored != entry->size)
      throw InputError(where, fmt::format("is stored in {} bytes and holds {}", stored, entry->size));
    if (little_endian(left, 34, 2) != 0) throw InputError(where, "is in another volume");

    read_local_header(*entry, name, directory.begin);
    const auto [place, is_new] = entries_.emplace(entry->name, nullptr);
    if (!is_new) throw InputError(where, "is there twice");
    place->second = std::move(entry);
    left.remove_prefix(kCentralBytes + name_bytes + extra_bytes + comment_bytes);
    if (left.empty() && number + 1 != directory.entries)
      throw InputError(path(),
                       fmt::format("its directory holds {} entries and says {}", number + 1, directory.entries));
  }
  if (entries_.empty()) throw InputError(path(), "is an empty archive");
}

void TorchArchive::read_local_header(Entry& entry, const std::string& full_name, uint64_t end_of_data) const {
  const std::string where = path() + " entry '" + full_name + "'";
  if (entry.header > end_of_data || end_of_data - entry.header < kLocalBytes)
    throw InputError(where, fmt::format("begins at byte {} of {} bytes of data", entry.header, end_of_data));
  std::string header(kLocalBytes, '\0');
  file_.read(entry.header, reinterpret_cast<std::byte*>(header.data()), header.size(), "entry '" + full_name + "'");
  if (header.substr(0, 4) != "PK\3\4") throw InputError(where, fmt::format("has no header at byte {}", entry.header));
  const uint64_t flags = little_endian(header, 6, 2), name_bytes = little_endian(header, 26, 2),
                 extra_bytes = little_endian(header, 28, 2);
  if (end_of_data - entry.header - kLocalBytes < name_bytes + extra_bytes)
    throw InputError(where, "has a header that reaches into the directory");
  std::string rest(name_bytes + extra_bytes, '\0');
  file_.read(entry.header + kLocalBytes, reinterpret_cast<std::byte*>(rest.data()), rest.size(),
             "entry '" + full_name + "'");
  if (rest.substr(0, name_bytes) != full_name)
    throw InputError(where, "is named '" + printable(rest.substr(0, name_bytes)) + "' by its own header");
  if ((flags & kEncrypted) || little_endian(header, 8, 2) != 0)
    throw InputError(where, "is encrypted or compressed by its own header");
  // With a descriptor behind the data, size and checksum in the header may be left out, which is 0.
  Zip64 zip64(std::string_view(rest).substr(name_bytes), where);
  const uint64_t size = zip64.value(little_endian(header, 22, 4)), stored = zip64.value(little_endian(header, 18, 4)),
                 crc = little_endian(header, 14, 4);
  const bool may_be_zero = flags & kDescriptor;
  const auto agrees = [&](uint64_t here, uint64_t there) { return here == there || (may_be_zero && here == 0); };
  if (!agrees(size, entry.size) || !agrees(stored, entry.size))
    throw InputError(where, fmt::format("has {} bytes by its own header and {} by the directory", size, entry.size));
  if (!agrees(crc, entry.crc)) throw InputError(where, "has another CRC-32 in its own header than in the directory");
  entry.data = entry.header + kLocalBytes + name_bytes + extra_bytes;
  if (entry.size > end_of_data - entry.data)
    throw InputError(
        where, fmt::format("has {} bytes from {} on, beyond the {} bytes of data", entry.size, entry.data, end_of_data),
        "the file was cut short, or its directory lies");
}

}  // namespace assay
