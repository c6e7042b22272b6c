// OutputDigest: one number for everything that a subject gave out in a case, bit for bit. Equal in every run of a
// subject that always computes in the same order; two rows with the same device, versions and case_digest that differ
// in it say that some kernel does not. No proof against forgery (that is sha256): 64 bits, quick enough for every call.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "cases/spec/trace.hpp"

namespace assay {

class OutputDigest {
 public:
  void add(std::string_view name, const HostTensor& value);  // name, dtype, shape and bytes
  void add(const Trace& trace);

  std::string text() const;  // 16 hexadecimal digits; empty when nothing was added

 private:
  void mix(uint64_t word);
  void mix(std::span<const std::byte> bytes);

  uint64_t state_ = 0x9e3779b97f4a7c15u;
  bool is_empty_ = true;
};

}  // namespace assay
