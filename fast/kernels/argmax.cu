#include "fast/kernels/argmax.hpp"
#include "fast/kernels/candidate.cuh"
#include "fast/kernels/launch.cuh"
#include "fast/kernels/require.hpp"
#include "fast/kernels/storage.cuh"

namespace assay::fast {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kPart = 8192;  // elements of a block

template <typename T>
__global__ void __launch_bounds__(kThreads) argmax_part_kernel(ArgmaxParams<T> p, Candidate* candidates) {
  __shared__ Candidate partial[kThreads / kWarp];
  const int64_t parts = ceil_div(p.width, kPart);
  for (int64_t item = blockIdx.x; item < p.rows * parts; item += gridDim.x) {
    const int64_t row = item / parts, first = (item - row * parts) * kPart;
    const int64_t end = min(first + kPart, p.width);
    Candidate best = 0;
    for (int64_t i = first + threadIdx.x; i < end; i += kThreads) {
      best = larger(best, make_candidate(to_float(p.x[row * p.x_stride + i]), i));
    }
    best = largest_of_block<kThreads>(best, partial);
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
    best = largest_of_block<kThreads>(best, partial);
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
