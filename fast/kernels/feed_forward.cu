#include "fast/kernels/feed_forward.hpp"
#include "fast/kernels/launch.cuh"
#include "fast/kernels/require.hpp"
#include "fast/kernels/storage.cuh"

namespace assay::fast {
namespace {

constexpr int kThreads = 256;

template <typename T, int kWidth, ActivationKind kKind>
__global__ void feed_forward_kernel(FeedForwardParams<T> p) {
  const int64_t packs = p.width / kWidth;
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < p.rows * packs; i += step) {
    const int64_t row = i / packs, at = (i - row * packs) * kWidth;
    float value[kWidth];
    load_pack<kWidth>(p.gate + row * p.gate_stride + at, value);
#pragma unroll
    for (int k = 0; k < kWidth; ++k) value[k] = activate<kKind>(p.multiplier * value[k]);
    if (p.up != nullptr) {
      float up[kWidth];
      load_pack<kWidth>(p.up + row * p.up_stride + at, up);
#pragma unroll
      for (int k = 0; k < kWidth; ++k) value[k] *= up[k];
    }
    store_pack<kWidth>(p.y + row * p.width + at, value);
  }
}

}  // namespace

template <typename T>
void feed_forward(const FeedForwardParams<T>& p, cudaStream_t stream) {
  constexpr const char* kName = "feed_forward";
  require_pointer(kName, "gate", p.gate);
  require_pointer(kName, "y", p.y);
  require_range(kName, "rows", p.rows, 1, kAnySize);
  require_range(kName, "width", p.width, 1, kAnySize);
  require_stride(kName, "gate_stride", p.gate_stride, p.width);
  if (p.up != nullptr) require_stride(kName, "up_stride", p.up_stride, p.width);
  constexpr int kWidth = kPackWidth<T>;
  const bool is_packed =
      is_packable<kWidth, T>({p.gate, p.up, p.y}, {p.width, p.gate_stride, p.up == nullptr ? 0 : p.up_stride});
  const int64_t blocks = ceil_div(p.rows * (p.width / (is_packed ? kWidth : 1)), kThreads);
  with_activation(p.activation, [&]<ActivationKind kKind>() {
    launch(kName, is_packed ? feed_forward_kernel<T, kWidth, kKind> : feed_forward_kernel<T, 1, kKind>, blocks,
           kThreads, stream, p);
  });
}

template void feed_forward<float>(const FeedForwardParams<float>&, cudaStream_t);

}  // namespace assay::fast
