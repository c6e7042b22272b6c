// gather_columns: columns of a row in another order, for projections whose rows interleave what the ops behind them
// read side by side (x and z of zamba, q, k, v and z of qwen3_next).
//
//     y[t, i] = x[t, index[i]]
//
// in   x      [T, X]        row t at t * x_stride
//      index  int32 [W]     0 <= index[i] < X, which the caller checks: others are filled with NaN
// out  y      [T, W]        row t at t * y_stride; may not alias x
//
// cost      2 T W sizeof(T) + 4 W bytes
// numerics  a copy
// source    models.md B3 (heads), B6.1 (packed)
// twin      at::split and at::cat in reference/blocks/delta_mixer.cpp
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <string_view>

#include "fast/kernels/kernel_id.hpp"

namespace assay::fast {

template <typename T>
struct GatherColumnsParams {
  const T* x = nullptr;
  int64_t x_stride = 0;
  const int32_t* index = nullptr;
  T* y = nullptr;
  int64_t y_stride = 0;
  int64_t rows = 0;          // T
  int64_t source_width = 0;  // X
  int64_t width = 0;         // W
};

template <typename T>
void gather_columns(const GatherColumnsParams<T>& p, cudaStream_t stream);

template <typename T>
constexpr std::string_view gather_columns_id(const GatherColumnsParams<T>&) {
  return kernel_id<"gather_columns_copy", T>;
}

}  // namespace assay::fast
