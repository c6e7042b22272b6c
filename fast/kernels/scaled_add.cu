#include "fast/kernels/launch.cuh"
#include "fast/kernels/require.hpp"
#include "fast/kernels/scaled_add.hpp"
#include "fast/kernels/storage.cuh"

namespace assay::fast {
namespace {

constexpr int kThreads = 256;

template <typename T, int kWidth>
__global__ void scaled_add_kernel(ScaledAddParams<T> p) {
  const int64_t packs = p.width / kWidth;
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < p.rows * packs; i += step) {
    const int64_t row = i / packs, at = (i - row * packs) * kWidth;
    float x[kWidth];
    load_pack<kWidth>(p.x + row * p.x_stride + at, x);
    if (p.residual != nullptr) {
      float sum[kWidth];
      load_pack<kWidth>(p.residual + row * p.residual_stride + at, sum);
#pragma unroll
      for (int k = 0; k < kWidth; ++k) x[k] = fmaf(p.scale, x[k], sum[k]);
    } else {
#pragma unroll
      for (int k = 0; k < kWidth; ++k) x[k] *= p.scale;
    }
    store_pack<kWidth>(p.y + row * p.y_stride + at, x);
  }
}

}  // namespace

template <typename T>
void scaled_add(const ScaledAddParams<T>& p, cudaStream_t stream) {
  constexpr const char* kName = "scaled_add";
  require_pointer(kName, "x", p.x);
  require_pointer(kName, "y", p.y);
  require_range(kName, "rows", p.rows, 1, kAnySize);
  require_range(kName, "width", p.width, 1, kAnySize);
  require_stride(kName, "x_stride", p.x_stride, p.width);
  require_stride(kName, "y_stride", p.y_stride, p.width);
  if (p.residual != nullptr) require_stride(kName, "residual_stride", p.residual_stride, p.width);
  constexpr int kWidth = kPackWidth<T>;
  const bool is_packed = is_packable<kWidth, T>(
      {p.x, p.residual, p.y}, {p.width, p.x_stride, p.y_stride, p.residual == nullptr ? 0 : p.residual_stride});
  launch(kName, is_packed ? scaled_add_kernel<T, kWidth> : scaled_add_kernel<T, 1>,
         ceil_div(p.rows * (p.width / (is_packed ? kWidth : 1)), kThreads), kThreads, stream, p);
}

template void scaled_add<float>(const ScaledAddParams<float>&, cudaStream_t);

}  // namespace assay::fast
