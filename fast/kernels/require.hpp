// Preconditions of the launchers. A violated one is an InputError that names the kernel, the field and its value.
#pragma once

#include <cstdint>
#include <string>

#include "cases/spec/error.hpp"

namespace assay::fast {

inline void require_pointer(const char* kernel, const char* field, const void* pointer) {
  if (pointer == nullptr) throw InputError(kernel, std::string(field) + " is null");
}

inline void require_range(const char* kernel, const char* field, int64_t value, int64_t low, int64_t high) {
  if (value < low || value > high) {
    throw InputError(kernel, std::string(field) + " = " + std::to_string(value) + ", allowed: " + std::to_string(low) +
                                 " to " + std::to_string(high));
  }
}

inline constexpr int64_t kAnySize = INT64_MAX;

// The row stride of a [rows, width] view, in elements: at least width.
inline void require_stride(const char* kernel, const char* field, int64_t stride, int64_t width) {
  if (stride < width) {
    throw InputError(kernel, std::string(field) + " = " + std::to_string(stride) + " is below the width of a row, " +
                                 std::to_string(width));
  }
}

inline void require_divides(const char* kernel, const char* divisor_name, int64_t divisor, const char* field,
                            int64_t value) {
  if (divisor < 1 || value % divisor != 0) {
    throw InputError(kernel, std::string(divisor_name) + " = " + std::to_string(divisor) + " does not divide " + field +
                                 " = " + std::to_string(value));
  }
}

}  // namespace assay::fast
