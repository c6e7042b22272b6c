// SHA-256 (FIPS 180-4), hexadecimal. Digests tie goldens to the configs, cases and weights they were recorded from.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace assay {

std::string sha256(std::span<const std::byte> bytes);
std::string sha256(std::string_view text);

}  // namespace assay
