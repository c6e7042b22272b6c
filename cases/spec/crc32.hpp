// The checksum of zip: CRC-32, polynomial 0xEDB88320 reflected, all ones before and after.
#pragma once

#include <cstddef>
#include <cstdint>

namespace assay {

// Of `count` bytes, going on from the checksum of what came before them.
uint32_t crc32(const std::byte* bytes, size_t count, uint32_t before = 0);

}  // namespace assay
