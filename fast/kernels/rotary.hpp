// rotary: rotates pairs of lanes of each head of q and k by the position of its token.
//
//     angle[i] = position * frequency[i], one float32 product, i < R / 2
//     y[i]         = x[i] cos(angle[i]) m - x[i + R/2] sin(angle[i]) m
//     y[i + R/2]   = x[i + R/2] cos(angle[i]) m + x[i] sin(angle[i]) m
//     y[j] = x[j] for the lanes j from R on
//
// in   x            q [T, nq, hd] and k [T, nkv, hd]: token t at t * x_stride, head h at h * x_head_stride from there
//      positions    int64 [T]
//      frequencies  float32 [R / 2], after every scaling (fast/blocks/rotary_frequencies.hpp)
// out  y            likewise with its own strides; may be x itself with the same strides, then lanes from R on stay
//
// requires  R even, 2 <= R <= hd; k.x null: q alone; positions below 2^24 in magnitude are exact
// cost      2 T (nq + nkv) hd sizeof(T) bytes; in place 2 T (nq + nkv) R sizeof(T)
// numerics  cosf and sinf of the float32 angle, each times m, then one product and one fused multiply-add a lane
// source    models.md B7
// twin      reference/ops/rotary.hpp
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <string_view>

#include "fast/kernels/kernel_id.hpp"

namespace assay::fast {

template <typename T>
struct RotaryHeads {
  const T* x = nullptr;
  int64_t x_stride = 0;
  int64_t x_head_stride = 0;
  T* y = nullptr;
  int64_t y_stride = 0;
  int64_t y_head_stride = 0;
  int64_t heads = 0;
};

template <typename T>
struct RotaryParams {
  RotaryHeads<T> q;
  RotaryHeads<T> k;
  const int64_t* positions = nullptr;
  const float* frequencies = nullptr;
  int64_t tokens = 0;          // T
  int64_t width = 0;           // hd
  int64_t rotary_width = 0;    // R
  float attention_factor = 1;  // m
};

template <typename T>
void rotary(const RotaryParams<T>& p, cudaStream_t stream);

template <typename T>
constexpr std::string_view rotary_id(const RotaryParams<T>&) {
  return kernel_id<"rotary_halves", T>;
}

}  // namespace assay::fast
