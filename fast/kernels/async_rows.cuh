// AsyncRows: rows of global memory to a tile in shared memory, by copies that pass no register and are waited for
// later. A thread copies chunks of kChunk floats of one column of chunks.
#pragma once

#include <cstdint>

#include "fast/kernels/async_copy.cuh"
#include "fast/kernels/launch.cuh"
#include "fast/kernels/storage.cuh"

namespace assay::fast {

inline constexpr int kChunk = 4;

// 16 bytes, both ends aligned.
__device__ inline void copy_packed(float* to, const float* from) {
  const auto at = static_cast<unsigned>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at), "l"(from) : "memory");
}

// A chunk's first `valid` elements; the others become 0.
__device__ inline void copy_single(float* to, const float* from, int valid) {
  const auto at = static_cast<unsigned>(__cvta_generic_to_shared(to));
#pragma unroll
  for (int i = 0; i < kChunk; ++i) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(at + 4 * i), "l"(from + i), "r"(i < valid ? 4 : 0)
                 : "memory");
  }
}

// The same where T has to be converted, and not asynchronous.
template <typename T>
__device__ inline void copy_single(float* to, const T* from, int valid) {
#pragma unroll
  for (int i = 0; i < kChunk; ++i) to[i] = i < valid ? to_float(from[i]) : 0.0f;
}
template <typename T>
__device__ inline void copy_packed(float* to, const T* from) {
  copy_single(to, from, kChunk);
}

// By kThreads threads, of which this one is the `thread`th.
template <typename T, int kThreads, int kRows, int kWidth>
class AsyncRows {
 public:
  static constexpr int kChunks = kWidth / kChunk;
  static constexpr int kPass = kThreads / kChunks;  // rows that are copied at once
  static_assert(kWidth % kChunk == 0 && kThreads % kChunks == 0);

  // Rows of `width` elements, up to kWidth of which are copied; the first one begins at `from`.
  __device__ AsyncRows(const T* from, int64_t stride, int64_t width, int thread)
      : row_(thread / kChunks),
        at_(thread % kChunks * kChunk),
        valid_(static_cast<int>(max(int64_t{0}, min(width - at_, int64_t{kChunk})))),
        from_(from + row_ * stride + at_),
        stride_(stride) {}

  // The first `rows` rows. is_packed: chunks are aligned, and none is valid in part; those that are not valid at all
  // are left as they are.
  __device__ void copy(float (&tile)[kRows][kWidth], int rows, bool is_packed) const {
    if (is_packed) {
      if (valid_ > 0) {
        for_own(rows, [&](int row, int64_t skipped) { copy_packed(&tile[row][at_], from_ + skipped); });
      }
    } else {
      for_own(rows, [&](int row, int64_t skipped) { copy_single(&tile[row][at_], from_ + skipped, valid_); });
    }
  }

  // Zeros in the chunks that are not valid at all.
  __device__ void clear(float (&tile)[kRows][kWidth]) const {
    if (valid_ > 0) return;
    for_own(kRows, [&](int row, int64_t) {
#pragma unroll
      for (int i = 0; i < kChunk; ++i) tile[row][at_ + i] = 0.0f;
    });
  }

 private:
  // visit(row, elements from this thread's first chunk on) for this thread's chunks in the first `rows` rows.
  template <typename Visit>
  __device__ void for_own(int rows, Visit visit) const {
#pragma unroll
    for (int skipped = 0; skipped < kRows; skipped += kPass) {
      if (row_ + skipped < rows) visit(row_ + skipped, skipped * stride_);
    }
  }

  int row_, at_, valid_;
  const T* from_;
  int64_t stride_;
};

}  // namespace assay::fast
