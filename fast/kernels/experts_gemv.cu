#include "fast/kernels/activation.hpp"
#include "fast/kernels/experts.hpp"
#include "fast/kernels/experts_require.hpp"
#include "fast/kernels/launch.cuh"
#include "fast/kernels/reduce.cuh"
#include "fast/kernels/storage.cuh"

namespace assay::fast {
namespace {

constexpr int kThreads = 128;
constexpr int kWarps = kThreads / kWarp;

// Over the lanes of a warp, in all of them: x . row.
template <int kWidth, typename T, typename X>
__device__ inline float dot(const X* x, const T* row, int64_t packs) {
  float sum[kWidth] = {};
#pragma unroll 4
  for (int64_t pack = static_cast<int>(threadIdx.x) % kWarp; pack < packs; pack += kWarp) {
    float left[kWidth], right[kWidth];
    load_pack<kWidth>(x + pack * kWidth, left);
    load_pack<kWidth>(row + pack * kWidth, right);
#pragma unroll
    for (int i = 0; i < kWidth; ++i) sum[i] = fmaf(left[i], right[i], sum[i]);
  }
#pragma unroll
  for (int i = 1; i < kWidth; ++i) sum[0] += sum[i];
  return sum_lanes<kWarp>(sum[0]);
}

// A warp an element of hidden [pairs, F].
template <typename T, int kWidth, ActivationKind kKind>
__global__ void __launch_bounds__(kThreads) experts_hidden_kernel(ExpertsParams<T> p, float* hidden) {
  const int64_t packs = p.width / kWidth;
  const int64_t expert_rows = p.is_gated ? 2 * p.hidden_width : p.hidden_width;
  for (int64_t item = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / kWarp;
       item < p.tokens * p.chosen * p.hidden_width; item += static_cast<int64_t>(gridDim.x) * kWarps) {
    const int64_t pair = item / p.hidden_width, f = item - pair * p.hidden_width;
    const T* x = p.x + pair / p.chosen * p.x_stride;
    const T* row = p.first + (p.experts[pair] * expert_rows + f) * p.width;
    float value = activate<kKind>(dot<kWidth>(x, row, packs));
    if (p.is_gated) value *= dot<kWidth>(x, row + p.hidden_width * p.width, packs);
    if (threadIdx.x % kWarp == 0) hidden[item] = value;
  }
}

// A warp an element of y.
template <typename T, int kWidth>
__global__ void __launch_bounds__(kThreads) experts_down_kernel(ExpertsParams<T> p, const float* hidden) {
  const int64_t packs = p.hidden_width / kWidth;
  for (int64_t item = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / kWarp; item < p.tokens * p.width;
       item += static_cast<int64_t>(gridDim.x) * kWarps) {
    const int64_t token = item / p.width, column = item - token * p.width;
    float sum = 0;
#pragma unroll 4
    for (int64_t pair = token * p.chosen; pair < (token + 1) * p.chosen; ++pair) {
      const T* row = p.down + (p.experts[pair] * p.width + column) * p.hidden_width;
      sum = fmaf(p.weights[pair], dot<kWidth>(hidden + pair * p.hidden_width, row, packs), sum);
    }
    if (threadIdx.x % kWarp == 0) p.y[item] = from_float<T>(sum);
  }
}

}  // namespace

template <typename T>
size_t experts_gemv_workspace_bytes(const ExpertsParams<T>& p) {
  require_experts_sizes("experts_gemv", p);
  return static_cast<size_t>(p.tokens * p.chosen * p.hidden_width) * sizeof(float);
}

template <typename T>
void experts_gemv(const ExpertsParams<T>& p, cudaStream_t stream) {
  constexpr const char* kName = "experts_gemv";
  require_experts_sizes(kName, p);
  require_experts_operands(kName, p);
  auto* hidden = static_cast<float*>(p.workspace);
  constexpr int kWidth = 4;
  const bool is_first_packed = is_packable<kWidth, T>({p.x, p.first}, {p.width, p.x_stride});
  const bool is_down_packed = is_packable<kWidth, T>({p.down}, {p.hidden_width});
  with_activation(p.activation, [&]<ActivationKind kKind>() {
    launch(kName, is_first_packed ? experts_hidden_kernel<T, kWidth, kKind> : experts_hidden_kernel<T, 1, kKind>,
           ceil_div(p.tokens * p.chosen * p.hidden_width, kWarps), kThreads, stream, p, hidden);
  });
  launch(kName, is_down_packed ? experts_down_kernel<T, kWidth> : experts_down_kernel<T, 1>,
         ceil_div(p.tokens * p.width, kWarps), kThreads, stream, p, hidden);
}

template size_t experts_gemv_workspace_bytes<float>(const ExpertsParams<float>&);
template void experts_gemv<float>(const ExpertsParams<float>&, cudaStream_t);

}  // namespace assay::fast
