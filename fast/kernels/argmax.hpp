// argmax: the place of the largest element of each row.
//
//     y[t] = the lowest i with x[t, i] = max of x[t]
//
// in   x          [T, V]      row t at t * x_stride
//      workspace  argmax_workspace_bytes(p) bytes, 8-byte aligned
// out  y          int64 [T]
//
// A block takes up to 14336 elements of a row; a second kernel, which is on the device before the first one ends, puts
// the parts of a row together.
//
// requires  V < 2^32
// cost      T V sizeof(T) bytes
// numerics  comparisons; ties go to the lower place, NaN counts as the largest, -0 and 0 are one
// source    torch.argmax
// twin      at::argmax
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "fast/kernels/kernel_id.hpp"

namespace assay::fast {

template <typename T>
struct ArgmaxParams {
  const T* x = nullptr;
  int64_t x_stride = 0;
  int64_t* y = nullptr;
  void* workspace = nullptr;
  int64_t rows = 0;   // T
  int64_t width = 0;  // V
};

template <typename T>
size_t argmax_workspace_bytes(const ArgmaxParams<T>& p);
template <typename T>
void argmax(const ArgmaxParams<T>& p, cudaStream_t stream);

template <typename T>
constexpr std::string_view argmax_id(const ArgmaxParams<T>&) {
  return kernel_id<"argmax_rows", T>;
}

}  // namespace assay::fast
