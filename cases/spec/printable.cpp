#include "cases/spec/printable.hpp"

#include <fmt/format.h>

#include <cstdint>

namespace assay {

bool is_printable_utf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const auto first = static_cast<unsigned char>(text[i++]);
    if (first < 0x20 || first == 0x7f) return false;
    if (first < 0x80) continue;
    const int more = first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : 1;
    if (first < 0xc2 || first > 0xf4 || text.size() - i < static_cast<size_t>(more)) return false;
    uint32_t code = first & (0x3f >> more);
    for (int k = 0; k < more; ++k) {
      const auto next = static_cast<unsigned char>(text[i++]);
      if ((next & 0xc0) != 0x80) return false;
      code = code << 6 | (next & 0x3f);
    }
    constexpr uint32_t kSmallest[] = {0, 0x80, 0x800, 0x10000};
    if (code < kSmallest[more] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return false;
    if (code < 0xa0) return false;  // the control characters above ASCII
  }
  return true;
}

std::string printable(std::string_view text) {
  std::string shown;
  for (const char letter : text) {
    if (shown.size() > 76) return shown + "...";
    const auto byte = static_cast<unsigned char>(letter);
    if (byte >= 0x20 && byte < 0x7f)
      shown += letter;
    else
      shown += fmt::format("\\x{:02x}", byte);
  }
  return shown;
}

}  // namespace assay
