// row_parts: how a row of logits is cut into the parts that blocks take. It depends on nothing but the width.
// load_logits: neighbours of a part, -inf behind its end.
#pragma once

#include <cstdint>

#include "fast/kernels/launch.cuh"
#include "fast/kernels/quotient.cuh"
#include "fast/kernels/storage.cuh"

namespace assay::fast {

struct RowParts {
  int64_t count;  // of one row
  int64_t share;  // elements of one; the last ones of a row may have fewer or none
};

// Parts of `most` elements at most, which is a multiple of a line.
inline RowParts row_parts(int64_t width, int64_t most) {
  constexpr int64_t kLine = 32;
  const int64_t count = ceil_div(width, most);
  return {count, ceil_div(ceil_div(width, count), kLine) * kLine};
}

struct RowPart {
  int64_t row, first;
  int size;
};

__device__ inline RowPart row_part(const RowParts& parts, int64_t width, int64_t item) {
  const int64_t row = quotient(item, parts.count), first = (item - row * parts.count) * parts.share;
  return {row, first, static_cast<int>(max(min(width - first, parts.share), int64_t{0}))};
}

// kIsPacked: by one access, which needs size and row to be multiples of it.
template <int kWidth, bool kIsPacked, typename T>
__device__ inline void load_logits(const T* part, int size, int at, float (&values)[kWidth]) {
#pragma unroll
  for (int i = 0; i < kWidth; ++i) values[i] = -__builtin_inff();
  if constexpr (kIsPacked) {
    if (at < size) load_pack<kWidth>(part + at, values);
  } else {
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      if (at + i < size) values[i] = to_float(part[at + i]);
    }
  }
}

}  // namespace assay::fast
