#include "fast/kernels/argmax.hpp"
#include "fast/kernels/launch.cuh"
#include "fast/kernels/order_key.hpp"
#include "fast/kernels/require.hpp"
#include "fast/kernels/storage.cuh"

namespace assay::fast {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kPart = 8192;  // elements of a block

using Candidate = unsigned long long;  // key of the value above, complement of the place below: the larger one wins

__device__ inline Candidate larger(Candidate a, Candidate b) { return a > b ? a : b; }

// In all threads. partial: one for each warp.
__device__ inline Candidate largest_of_block(Candidate value, Candidate* partial) {
#pragma unroll
  for (int offset = kWarp / 2; offset > 0; offset /= 2)
    value = larger(value, __shfl_xor_sync(kFullWarp, value, offset));
  __syncthreads();  // an earlier call's have been read
  if (threadIdx.x % kWarp == 0) partial[threadIdx.x / kWarp] = value;
  __syncthreads();
#pragma unroll
  for (int w = 0; w < kThreads / kWarp; ++w) value = larger(value, partial[w]);
  return value;
}

template <typename T>
__global__ void __launch_bounds__(kThreads) argmax_part_kernel(ArgmaxParams<T> p, Candidate* candidates) {
  __shared__ Candidate partial[kThreads / kWarp];
  const int64_t parts = ceil_div(p.width, kPart);
  for (int64_t item = blockIdx.x; item < p.rows * parts; item += gridDim.x) {
    const int64_t row = item / parts, first = (item - row * parts) * kPart;
    const int64_t end = min(first + kPart, p.width);
    Candidate best = 0;
    for (int64_t i = first + threadIdx.x; i < end; i += kThreads) {
      const Candidate key = order_key(to_float(p.x[row * p.x_stride + i]));
      best = larger(best, key << 32 | (0xffffffffu - static_cast<uint32_t>(i)));
    }
    best = largest_of_block(best, partial);
    if (threadIdx.x == 0) candidates[item] = best;
  }
}

template <typename T>
__global__ void __launch_bounds__(kThreads) argmax_combine_kernel(ArgmaxParams<T> p, const Candidate* candidates) {
  __shared__ Candidate partial[kThreads / kWarp];
  const int64_t parts = ceil_div(p.width, kPart);
  for (int64_t row = blockIdx.x; row < p.rows; row += gridDim.x) {
    Candidate best = 0;
    for (int64_t i = threadIdx.x; i < parts; i += kThreads) best = larger(best, candidates[row * parts + i]);
    best = largest_of_block(best, partial);
    if (threadIdx.x == 0) p.y[row] = 0xffffffffu - static_cast<uint32_t>(best);
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
  return static_cast<size_t>(p.rows * ceil_div(p.width, kPart)) * sizeof(Candidate);
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
  launch(kName, argmax_part_kernel<T>, p.rows * ceil_div(p.width, kPart), kThreads, stream, p, candidates);
  launch(kName, argmax_combine_kernel<T>, p.rows, kThreads, stream, p, candidates);
}

template size_t argmax_workspace_bytes<float>(const ArgmaxParams<float>&);
template void argmax<float>(const ArgmaxParams<float>&, cudaStream_t);

}  // namespace assay::fast
