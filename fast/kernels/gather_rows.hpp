// gather_rows: rows by source, for the reordering of beams and for caches that move to a larger capacity.
//
//     y[b, i, :W] = x[source[b], i, :W]
//
// in   x       [R, I, W]   row (r, i) at (r * I + i) * x_stride
//      source  int64 [B]   null: row b itself
// out  y       [B, I, W]   row (b, i) at (b * I + i) * y_stride; what lies between the rows stays; may not alias x
//
// requires  0 <= source[b] < R, which the caller checks: a row whose source is outside is filled with NaN
// cost      2 B I W sizeof(T) bytes
// numerics  a copy
// source    models.md 3.2
// twin      at::index_select in reference/session.cpp
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <string_view>

#include "fast/kernels/kernel_id.hpp"

namespace assay::fast {

template <typename T>
struct GatherRowsParams {
  const T* x = nullptr;
  int64_t x_stride = 0;
  const int64_t* source = nullptr;
  T* y = nullptr;
  int64_t y_stride = 0;
  int64_t source_rows = 0;  // R
  int64_t rows = 0;         // B
  int64_t inner = 1;        // I: key heads, say
  int64_t width = 0;        // W
};

template <typename T>
void gather_rows(const GatherRowsParams<T>& p, cudaStream_t stream);

template <typename T>
constexpr std::string_view gather_rows_id(const GatherRowsParams<T>&) {
  return kernel_id<"gather_rows_copy", T>;
}

}  // namespace assay::fast
