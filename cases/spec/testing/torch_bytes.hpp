// Bytes of pickles and of zip archives, right ones and wrong ones, for the tests of what reads them.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cases/spec/little_endian.hpp"

namespace assay::testing {

// Pieces of a pickle of protocol 2.
inline std::string bytes_of(uint64_t value, size_t width) {
  std::string bytes;
  append_little_endian(bytes, value, width);
  return bytes;
}
inline std::string text(const std::string& value) { return std::string("X").append(bytes_of(value.size(), 4)) + value; }
inline std::string number(int64_t value) {
  return std::string("\x8a\x08").append(bytes_of(static_cast<uint64_t>(value), 8));
}
inline std::string global(const std::string& module, const std::string& name) {
  return "c" + module + "\n" + name + "\n";
}
inline std::string tuple(const std::vector<std::string>& items) {
  std::string all = "(";
  for (const std::string& item : items) all += item;
  return all + "t";
}
inline std::string numbers(const std::vector<int64_t>& values) {
  std::vector<std::string> items;
  for (const int64_t value : values) items.push_back(number(value));
  return tuple(items);
}
inline std::string no_hooks() { return global("collections", "OrderedDict") + ")R"; }
inline std::string storage(const std::string& key, int64_t count, const std::string& type = "FloatStorage",
                           const std::string& device = "cpu") {
  return tuple({text("storage"), global("torch", type), text(key), text(device), number(count)}) + "Q";
}
inline std::string tensor(const std::string& of_storage, int64_t offset, const std::vector<int64_t>& sizes,
                          const std::vector<int64_t>& strides) {
  return global("torch._utils", "_rebuild_tensor_v2") +
         tuple({of_storage, number(offset), numbers(sizes), numbers(strides), "\x89", no_hooks()}) + "R";
}
inline std::string parameter(const std::string& of_tensor) {
  return global("torch._utils", "_rebuild_parameter") + tuple({of_tensor, "\x88", no_hooks()}) + "R";
}
inline std::string dict(const std::vector<std::pair<std::string, std::string>>& entries) {
  std::string all = "}(";
  for (const auto& [name, value] : entries) all += text(name) + value;
  return all + "u";
}
inline std::string pickle(const std::string& body) { return "\x80\x02" + body + "."; }

// An archive entry by entry: what the headers say is what the bytes are, unless a test says otherwise.
struct ZipEntry {
  std::string name, bytes;
  uint32_t crc = 0;  // 0: not recorded
  uint16_t method = 0, flags = 0;
  // Lies; -1 is the truth.
  int64_t size = -1, stored = -1, header_at = -1, local_size = -1;
  std::string local_name, extra = "";
};

struct ZipEnd {
  int64_t begin = -1, bytes = -1, entries = -1;  // lies of the end record; -1 is the truth
  int64_t wide_bytes = -1, wide_at = -1;         // lies of the zip64 record and of its locator
  bool is_wide = true;
};

inline std::string zip(const std::vector<ZipEntry>& entries, const ZipEnd& lies = {}) {
  const auto said = [](int64_t lie, uint64_t truth) { return lie < 0 ? truth : static_cast<uint64_t>(lie); };
  std::string all, directory;
  for (const ZipEntry& entry : entries) {
    const uint64_t at = said(entry.header_at, all.size()), size = said(entry.size, entry.bytes.size()),
                   stored = said(entry.stored, size);
    const std::string& local_name = entry.local_name.empty() ? entry.name : entry.local_name;
    all += "PK\3\4" + bytes_of(20, 2) + bytes_of(entry.flags, 2) + bytes_of(entry.method, 2) + bytes_of(0, 4) +
           bytes_of(entry.crc, 4) + bytes_of(said(entry.local_size, stored), 4) +
           bytes_of(said(entry.local_size, size), 4) + bytes_of(local_name.size(), 2) + bytes_of(0, 2) + local_name +
           entry.bytes;
    directory += "PK\1\2" + bytes_of(20, 2) + bytes_of(20, 2) + bytes_of(entry.flags, 2) + bytes_of(entry.method, 2) +
                 bytes_of(0, 4) + bytes_of(entry.crc, 4) + bytes_of(stored, 4) + bytes_of(size, 4) +
                 bytes_of(entry.name.size(), 2) + bytes_of(entry.extra.size(), 2) + bytes_of(0, 2) + bytes_of(0, 2) +
                 bytes_of(0, 2) + bytes_of(0, 4) + bytes_of(at, 4) + entry.name + entry.extra;
  }
  const uint64_t begin = all.size(), bytes = directory.size(), count = entries.size();
  all += directory;
  if (lies.is_wide) {
    const uint64_t wide_at = all.size();
    all += "PK\6\6" + bytes_of(44, 8) + bytes_of(45, 2) + bytes_of(45, 2) + bytes_of(0, 8) + bytes_of(count, 8) +
           bytes_of(count, 8) + bytes_of(said(lies.wide_bytes, bytes), 8) + bytes_of(begin, 8);
    all += "PK\6\7" + bytes_of(0, 4) + bytes_of(said(lies.wide_at, wide_at), 8) + bytes_of(1, 4);
  }
  return all + "PK\5\6" + bytes_of(0, 4) + bytes_of(said(lies.entries, count), 2) +
         bytes_of(said(lies.entries, count), 2) + bytes_of(said(lies.bytes, bytes), 4) +
         bytes_of(said(lies.begin, begin), 4) + bytes_of(0, 2);
}

// What torch.save writes: a pickle, storages by number, the notes.
inline std::vector<ZipEntry> torch_entries(const std::string& data_pkl, const std::vector<std::string>& storages) {
  std::vector<ZipEntry> entries = {{"archive/data.pkl", data_pkl}, {"archive/byteorder", "little"}};
  for (size_t i = 0; i < storages.size(); ++i) entries.push_back({"archive/data/" + std::to_string(i), storages[i]});
  entries.push_back({"archive/version", "3\n"});
  return entries;
}

inline std::string floats(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

}  // namespace assay::testing
