// Storage types: how a kernel reads and writes T while it computes in float. A further type joins by its two
// conversions here, its name in kernel_id.hpp and an instantiation line in each .cu.
#pragma once

#include <cstdint>
#include <initializer_list>

namespace assay::fast {

__device__ inline float to_float(float x) { return x; }

template <typename T>
__device__ inline T from_float(float x);
template <>
__device__ inline float from_float<float>(float x) {
  return x;
}

// Elements in one 16-byte access.
template <typename T>
inline constexpr int kPackWidth = 16 / static_cast<int>(sizeof(T));

template <typename T, int kWidth>
struct alignas(sizeof(T) * kWidth) Pack {
  T at[kWidth];
};

template <int kWidth, typename T>
__device__ inline void load_pack(const T* from, float (&to)[kWidth]) {
  const Pack<T, kWidth> pack = *reinterpret_cast<const Pack<T, kWidth>*>(from);
#pragma unroll
  for (int i = 0; i < kWidth; ++i) to[i] = to_float(pack.at[i]);
}

template <int kWidth, typename T>
__device__ inline void store_pack(T* to, const float (&from)[kWidth]) {
  Pack<T, kWidth> pack;
#pragma unroll
  for (int i = 0; i < kWidth; ++i) pack.at[i] = from_float<T>(from[i]);
  *reinterpret_cast<Pack<T, kWidth>*>(to) = pack;
}

// Whether rows can be read in packs of kWidth: every pointer aligned to a pack (null is), every stride and width a
// multiple of it.
template <int kWidth, typename T>
bool is_packable(std::initializer_list<const T*> pointers, std::initializer_list<int64_t> strides) {
  for (const T* pointer : pointers) {
    if (reinterpret_cast<uintptr_t>(pointer) % (sizeof(T) * kWidth) != 0) return false;
  }
  for (int64_t stride : strides) {
    if (stride % kWidth != 0) return false;
  }
  return true;
}

}  // namespace assay::fast
