// top_log_probs: the k largest of each row of logits, descending, as log-probabilities with their places.
//
//     ids[t]    = the first k places of x[t] by (value descending, place ascending)
//     values[t] = (x[t, ids] - max) - log(sum over V of exp(x[t] - max))
//
// in   x          [T, V]         row t at t * x_stride
//      workspace  top_log_probs_workspace_bytes(p) bytes, 8-byte aligned
// out  values     [T, k]         dense
//      ids        int64 [T, k]   dense
//
// A block takes up to 8192 logits of a row, which it reads once and keeps in registers: their maximum, their sum and
// their k largest; a second kernel, which is on the device before the first one ends, puts the parts of a row together.
//
// requires  1 <= k <= V, k <= 1024, V < 2^32
// cost      T V sizeof(T) bytes; beyond k = 256, and where hundreds of a part are alike, the choice takes k steps in
//           each block
// numerics  float32. The choice compares logits: exact. The sum is shifted by the maximum of those it is over and taken
//           in a fixed order: a thread's 32, a butterfly, over warps and parts. A thread's exponentials are the
//           hardware's ex2; what they are off by, 2^-22 near the maximum and more for terms that count for little,
//           averages out, and the error of the values is the rounding of their last subtraction. Ties go to the lower
//           place, as in argmax, so that k = 1 is the greedy choice; torch.topk promises no order of ties. NaN counts
//           as the largest, and makes all values of its row NaN
// source    torch.log_softmax, torch.sort(stable, descending)
// twin      reference/ops/top_log_probs.hpp
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "fast/kernels/kernel_id.hpp"

namespace assay::fast {

template <typename T>
struct TopLogProbsParams {
  const T* x = nullptr;
  int64_t x_stride = 0;
  float* values = nullptr;
  int64_t* ids = nullptr;
  void* workspace = nullptr;
  int64_t rows = 0;    // T
  int64_t width = 0;   // V
  int64_t chosen = 0;  // k
};

template <typename T>
size_t top_log_probs_workspace_bytes(const TopLogProbsParams<T>& p);
template <typename T>
void top_log_probs(const TopLogProbsParams<T>& p, cudaStream_t stream);

template <typename T>
constexpr std::string_view top_log_probs_id(const TopLogProbsParams<T>&) {
  return kernel_id<"top_log_probs", T>;
}

}  // namespace assay::fast
