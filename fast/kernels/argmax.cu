#include "fast/kernels/argmax.hpp"
#include "fast/kernels/candidate.cuh"
#include "fast/kernels/dependent_launch.cuh"
#include "fast/kernels/launch.cuh"
#include "fast/kernels/require.hpp"
#include "fast/kernels/row_parts.cuh"
#include "fast/kernels/storage.cuh"

namespace assay::fast {
namespace {

constexpr int kThreads = 256;
constexpr int kAhead = 2;  // accesses of a thread on their way while as many are compared
constexpr int64_t kPart = 14336;

template <typename T, bool kIsPacked>
__global__ void __launch_bounds__(kThreads, 6)
    argmax_part_kernel(ArgmaxParams<T> p, RowParts parts, Candidate* candidates) {
  constexpr int kWidth = kPackWidth<T>, kStep = kWidth * kThreads;
  __shared__ Candidate partial[kThreads / kWarp];
  let_dependents_start();
  for (int64_t item = blockIdx.x; item < p.rows * parts.count; item += gridDim.x) {
    const RowPart part = row_part(parts, p.width, item);
    const T* x = p.x + part.row * p.x_stride + part.first;
    float next[kAhead][kWidth];
    const auto load = [&](int at) {
#pragma unroll
      for (int j = 0; j < kAhead; ++j) load_logits<kWidth, kIsPacked>(x, part.size, at + j * kStep, next[j]);
    };
    uint32_t most = 0;
    int place = 0, at = static_cast<int>(threadIdx.x) * kWidth;
    load(at);
    for (; at < part.size; at += kAhead * kStep) {
      float values[kAhead][kWidth];
#pragma unroll
      for (int j = 0; j < kAhead; ++j) {
#pragma unroll
        for (int i = 0; i < kWidth; ++i) values[j][i] = next[j][i];
      }
      load(at + kAhead * kStep);
#pragma unroll
      for (int j = 0; j < kAhead; ++j) {
#pragma unroll
        for (int i = 0; i < kWidth; ++i) {
          // Places ascend: of equals the first stays, and -inf behind the end comes after one of the row.
          const uint32_t key = order_key(values[j][i]);
          if (key > most) {
            most = key;
            place = at + j * kStep + i;
          }
        }
      }
    }
    Candidate best = most == 0 ? 0 : candidate_of_key(most, part.first + place);
    best = largest_of_block<kThreads>(best, partial);
    if (threadIdx.x == 0) candidates[item] = best;
  }
}

// A warp a row.
template <typename T>
__global__ void __launch_bounds__(kWarp)
    argmax_combine_kernel(ArgmaxParams<T> p, RowParts parts, const Candidate* candidates) {
  wait_for_earlier();
  for (int64_t row = blockIdx.x; row < p.rows; row += gridDim.x) {
    Candidate best = 0;
    for (int64_t i = threadIdx.x; i < parts.count; i += kWarp) best = larger(best, candidates[row * parts.count + i]);
    best = largest_of_warp(best);
    if (threadIdx.x == 0) p.y[row] = place_of(best);
  }
}

template <typename T>
void require_sizes(const ArgmaxParams<T>& p) {
  require_range("argmax", "rows", p.rows, 1, kAnySize);
  require_range("argmax", "width", p.width, 1, int64_t{UINT32_MAX});
}

}  // namespace

template <typename T>
size_t argmax_workspace_bytes(const ArgmaxParams<T>& p) {
  require_sizes(p);
  return static_cast<size_t>(p.rows * row_parts(p.width, kPart).count) * sizeof(Candidate);
}

template <typename T>
void argmax(const ArgmaxParams<T>& p, cudaStream_t stream) {
  constexpr const char* kName = "argmax";
  require_sizes(p);
  require_pointer(kName, "x", p.x);
  require_pointer(kName, "y", p.y);
  require_pointer(kName, "workspace", p.workspace);
  require_stride(kName, "x_stride", p.x_stride, p.width);
  auto* candidates = static_cast<Candidate*>(p.workspace);
  const RowParts parts = row_parts(p.width, kPart);
  const bool is_packed = is_packable<kPackWidth<T>, T>({p.x}, {p.width, p.x_stride});
  launch(kName, is_packed ? argmax_part_kernel<T, true> : argmax_part_kernel<T, false>, p.rows * parts.count, kThreads,
         stream, p, parts, candidates);
  launch_dependent(kName, argmax_combine_kernel<T>, p.rows, kWarp, stream, p, parts, candidates);
}

template size_t argmax_workspace_bytes<float>(const ArgmaxParams<float>&);
template void argmax<float>(const ArgmaxParams<float>&, cudaStream_t);

}  // namespace assay::fast
