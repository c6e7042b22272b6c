// embedding: rows of a table by token id.
//
//     y[t] = weight[ids[t]]
//
// in   ids     int64 [T]
//      weight  [V, H]
// out  y       [T, H]
//
// requires  densely packed; 0 <= ids[t] < V, which the caller checks: a row whose id is outside is filled with NaN
// cost      2 T H * sizeof(T) + 8 T bytes
// numerics  a copy
// source    models.md 1.2
// twin      reference/ops/embedding.hpp
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <string_view>

#include "fast/kernels/kernel_id.hpp"

namespace assay::fast {

template <typename T>
struct EmbeddingParams {
  const int64_t* ids = nullptr;
  const T* weight = nullptr;
  T* y = nullptr;
  int64_t tokens = 0;  // T
  int64_t vocabulary = 0;
  int64_t width = 0;
};

template <typename T>
void embedding(const EmbeddingParams<T>& p, cudaStream_t stream);

template <typename T>
constexpr std::string_view embedding_id(const EmbeddingParams<T>&) {
  return kernel_id<"embedding_gather", T>;
}

}  // namespace assay::fast
