// scaled_add: a multiplier, with the residual add behind it if residual is given.
//
//     y = residual + scale * x;   y = scale * x where residual is null
//
// in   x         [T, W]   row t at t * x_stride
//      residual  [T, W]   residual_stride likewise; null: none
// out  y         [T, W]   y_stride likewise; may alias x or residual with the same stride
//
// cost      3 T W sizeof(T) bytes, without residual 2 T W sizeof(T)
// numerics  float32, one fused multiply-add
// source    models.md B11, B14
// twin      the models' multipliers: reference/models/granitemoehybrid.hpp, falcon_h1.hpp
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <string_view>

#include "fast/kernels/kernel_id.hpp"

namespace assay::fast {

template <typename T>
struct ScaledAddParams {
  const T* x = nullptr;
  int64_t x_stride = 0;
  const T* residual = nullptr;
  int64_t residual_stride = 0;
  T* y = nullptr;
  int64_t y_stride = 0;
  int64_t rows = 0;   // T
  int64_t width = 0;  // W
  float scale = 1;
};

template <typename T>
void scaled_add(const ScaledAddParams<T>& p, cudaStream_t stream);

template <typename T>
constexpr std::string_view scaled_add_id(const ScaledAddParams<T>& p) {
  return p.residual != nullptr ? kernel_id<"scaled_add_residual", T> : kernel_id<"scaled_add_none", T>;
}

}  // namespace assay::fast
