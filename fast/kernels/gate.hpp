// gate: the output gate of attention.
//
//     y = x * sigmoid(gate)
//
// in   x     [T, heads, W]   dense
//      gate  [T, heads, W]   token t at t * gate_stride, head h at h * gate_head_stride from there: the gate lies
//                            between the queries where a projection alternates head by head
// out  y     [T, heads, W]   dense; may alias x
//
// cost      3 T heads W sizeof(T) bytes
// numerics  float32, expf
// source    models.md B8
// twin      reference/blocks/attention.hpp
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <string_view>

#include "fast/kernels/kernel_id.hpp"

namespace assay::fast {

template <typename T>
struct GateParams {
  const T* x = nullptr;
  const T* gate = nullptr;
  int64_t gate_stride = 0;
  int64_t gate_head_stride = 0;
  T* y = nullptr;
  int64_t rows = 0;  // T
  int64_t heads = 0;
  int64_t width = 0;  // W
};

template <typename T>
void gate(const GateParams<T>& p, cudaStream_t stream);

template <typename T>
constexpr std::string_view gate_id(const GateParams<T>&) {
  return kernel_id<"gate_sigmoid", T>;
}

}  // namespace assay::fast
