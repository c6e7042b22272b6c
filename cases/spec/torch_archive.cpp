#include "cases/spec/torch_archive.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "cases/spec/crc32.hpp"
#include "cases/spec/error.hpp"
#include "cases/spec/printable.hpp"

namespace assay {

TorchArchive::TorchArchive(const std::filesystem::path& file) : file_(file) {
  read_directory(find_directory());
  check_places();
  check_kind();
}

const TorchArchive::Entry* TorchArchive::find(std::string_view name) const {
  const auto found = entries_.find(name);
  return found == entries_.end() ? nullptr : found->second.get();
}

std::vector<std::string> TorchArchive::names() const {
  std::vector<std::string> all;
  for (const auto& entry : entries_) all.push_back(entry.first);
  return all;
}

void TorchArchive::check_places() const {
  std::vector<const Entry*> order;
  for (const auto& entry : entries_) order.push_back(entry.second.get());
  std::sort(order.begin(), order.end(), [](const Entry* a, const Entry* b) { return a->header < b->header; });
  for (size_t i = 1; i < order.size(); ++i)
    if (order[i]->header < order[i - 1]->data + order[i - 1]->size)
      throw InputError(where(*order[i]), "overlaps '" + order[i - 1]->name + "'");
}

void TorchArchive::check_kind() const {
  if (!find("data.pkl")) throw InputError(path(), "has no entry 'data.pkl'", "not an archive that torch.save wrote");
  if (const Entry* order = find("byteorder")) {
    const std::string text = read_text(*order, 64);
    if (text != "little") throw InputError(where(*order), "says '" + printable(text) + "'", "only 'little' is read");
  }
  const Entry* entry = find("version");
  if (!entry) throw InputError(path(), "has no entry 'version'", "not an archive that torch.save wrote");
  std::string text = read_text(*entry, 64);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  int version = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), version);
  if (end.ec != std::errc() || end.ptr != text.data() + text.size() || version < 1 || version > 10)
    throw InputError(where(*entry), "says '" + printable(text) + "'", "versions 1 to 10 are read");
}

std::string TorchArchive::read_text(const Entry& entry, uint64_t limit) const {
  if (entry.size > limit)
    throw InputError(where(entry), fmt::format("has {} bytes, at most {} are read", entry.size, limit));
  std::string text(entry.size, '\0');
  read(entry, 0, reinterpret_cast<std::byte*>(text.data()), text.size(), "entry '" + entry.name + "'");
  return text;
}

void TorchArchive::read(const Entry& entry, uint64_t begin, std::byte* into, uint64_t count,
                        const std::string& what) const {
  if (begin > entry.size || count > entry.size - begin)
    throw HarnessError(where(entry), fmt::format("has {} bytes, not {} from {} on", entry.size, count, begin));
  file_.read(entry.data + begin, into, count, what);
  if (entry.crc == 0 || entry.is_verified) return;
  if (count == entry.size) return verify(entry, crc32(into, count), what);
  std::vector<std::byte> piece(std::min<uint64_t>(entry.size, 1 << 20));
  uint32_t crc = 0;
  for (uint64_t at = 0; at < entry.size; at += piece.size()) {
    const uint64_t bytes = std::min<uint64_t>(piece.size(), entry.size - at);
    file_.read(entry.data + at, piece.data(), bytes, what);
    crc = crc32(piece.data(), bytes, crc);
  }
  verify(entry, crc, what);
}

void TorchArchive::verify(const Entry& entry, uint32_t crc, const std::string& what) const {
  if (crc != entry.crc)
    throw InputError(where(entry),
                     fmt::format("{} is damaged: CRC-32 {:08x}, the archive says {:08x}", what, crc, entry.crc));
  entry.is_verified = true;
}

}  // namespace assay
