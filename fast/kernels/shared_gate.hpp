// shared_gate: a shared expert behind its own gate, one number a token, added to the routed ones.
//
//     y[t] = residual[t] + sigmoid(gate[t]) * x[t]
//
// in   x         [T, W]   dense
//      gate      [T]      element t at t * gate_stride
//      residual  [T, W]   dense; null: none
// out  y         [T, W]   dense; may alias x or residual
//
// cost      3 T W sizeof(T) bytes, without residual 2 T W sizeof(T)
// numerics  float32, expf, one fused multiply-add
// source    models.md B10
// twin      reference/models/qwen_backbone.hpp
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <string_view>

#include "fast/kernels/kernel_id.hpp"

namespace assay::fast {

template <typename T>
struct SharedGateParams {
  const T* x = nullptr;
  const T* gate = nullptr;
  int64_t gate_stride = 1;
  const T* residual = nullptr;
  T* y = nullptr;
  int64_t rows = 0;   // T
  int64_t width = 0;  // W
};

template <typename T>
void shared_gate(const SharedGateParams<T>& p, cudaStream_t stream);

template <typename T>
constexpr std::string_view shared_gate_id(const SharedGateParams<T>&) {
  return kernel_id<"shared_gate_add", T>;
}

}  // namespace assay::fast
