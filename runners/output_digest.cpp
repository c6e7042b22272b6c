#include "runners/output_digest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

namespace assay {

// Odd factors and a rotation: every word reaches every bit within two more words.
void OutputDigest::mix(uint64_t word) {
  state_ = std::rotl(state_ ^ word * 0x9fb21c651e98df25u, 29) * 0xd6e8feb86659fd93u;
}

void OutputDigest::mix(std::span<const std::byte> bytes) {
  mix(bytes.size());
  for (size_t i = 0; i < bytes.size(); i += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + i, std::min(sizeof word, bytes.size() - i));
    mix(word);
  }
}

void OutputDigest::add(std::string_view name, const HostTensor& value) {
  is_empty_ = false;
  mix(std::as_bytes(std::span(name)));
  mix(static_cast<uint64_t>(value.dtype()));
  for (const int64_t size : value.shape()) mix(static_cast<uint64_t>(size));
  mix(value.bytes());
}

void OutputDigest::add(const Trace& trace) {
  for (const NamedTensor& probe : trace.probes) add(probe.name, probe.value);
}

std::string OutputDigest::text() const {
  return is_empty_ ? "" : fmt::format("{:016x}", (state_ ^ state_ >> 32) * 0xd6e8feb86659fd93u);
}

}  // namespace assay
