// Floats as integers that order alike: NaN above everything, -0 and 0 one value. No value has the key 0.
#pragma once

#include <cstdint>

#include "fast/kernels/math.hpp"

namespace assay::fast {

__host__ __device__ inline uint32_t order_key(float value) {
  const uint32_t bits = float_to_bits(value + 0.0f);
#ifdef __CUDA_ARCH__
  // The device's sums have one NaN, 0x7fffffff, which needs no test: its key is the largest.
  return bits ^ (static_cast<uint32_t>(static_cast<int32_t>(bits) >> 31) | 0x80000000u);
#else
  if (value != value) return 0xffffffffu;
  return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
#endif
}

__host__ __device__ inline float from_order_key(uint32_t key) {
  if (key == 0xffffffffu) return bits_to_float(0x7fc00000u);
  return bits_to_float((key & 0x80000000u) != 0 ? key & 0x7fffffffu : ~key);
}

}  // namespace assay::fast
