#include "cases/spec/crc32.hpp"

#include <array>

namespace assay {

uint32_t crc32(const std::byte* bytes, size_t count, uint32_t before) {
  // Eight tables: table[k][b] is what byte b does k bytes before the end of a group of eight.
  static const auto tables = [] {
    std::array<std::array<uint32_t, 256>, 8> all{};
    for (uint32_t byte = 0; byte < 256; ++byte) {
      uint32_t value = byte;
      for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ (0xedb88320u & (0u - (value & 1)));
      all[0][byte] = value;
    }
    for (size_t k = 1; k < 8; ++k)
      for (size_t byte = 0; byte < 256; ++byte)
        all[k][byte] = (all[k - 1][byte] >> 8) ^ all[0][all[k - 1][byte] & 0xff];
    return all;
  }();
  uint32_t crc = ~before;
  const auto at = [&](size_t i) { return std::to_integer<uint32_t>(bytes[i]); };
  for (; count >= 8; count -= 8, bytes += 8) {
    crc ^= at(0) | at(1) << 8 | at(2) << 16 | at(3) << 24;
    crc = tables[7][crc & 0xff] ^ tables[6][crc >> 8 & 0xff] ^ tables[5][crc >> 16 & 0xff] ^ tables[4][crc >> 24] ^
          tables[3][at(4)] ^ tables[2][at(5)] ^ tables[1][at(6)] ^ tables[0][at(7)];
  }
  for (; count > 0; --count, ++bytes) crc = (crc >> 8) ^ tables[0][(crc ^ at(0)) & 0xff];
  return ~crc;
}

}  // namespace assay
