#include "fast/kernels/gather_rows.hpp"
#include "fast/kernels/launch.cuh"
#include "fast/kernels/math.hpp"
#include "fast/kernels/require.hpp"
#include "fast/kernels/storage.cuh"

namespace assay::fast {
namespace {

constexpr int kThreads = 256;

template <typename T, int kWidth>
__global__ void gather_rows_kernel(GatherRowsParams<T> p) {
  const int64_t packs = p.width / kWidth;
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < p.rows * p.inner * packs; i += step) {
    const int64_t to = i / packs, at = (i - to * packs) * kWidth;
    const int64_t row = to / p.inner, inner = to - row * p.inner;
    const int64_t from = p.source == nullptr ? row : p.source[row];
    float value[kWidth];
    if (from >= 0 && from < p.source_rows) {
      load_pack<kWidth>(p.x + (from * p.inner + inner) * p.x_stride + at, value);
    } else {
#pragma unroll
      for (int k = 0; k < kWidth; ++k) value[k] = bits_to_float(0x7fc00000u);  // NaN
    }
    store_pack<kWidth>(p.y + to * p.y_stride + at, value);
  }
}

}  // namespace

template <typename T>
void gather_rows(const GatherRowsParams<T>& p, cudaStream_t stream) {
  constexpr const char* kName = "gather_rows";
  require_pointer(kName, "x", p.x);
  require_pointer(kName, "y", p.y);
  require_range(kName, "source_rows", p.source_rows, 1, kAnySize);
  require_range(kName, "rows", p.rows, 1, kAnySize);
  require_range(kName, "inner", p.inner, 1, kAnySize);
  require_range(kName, "width", p.width, 1, kAnySize);
  require_stride(kName, "x_stride", p.x_stride, p.width);
  require_stride(kName, "y_stride", p.y_stride, p.width);
  constexpr int kWidth = kPackWidth<T>;
  const bool is_packed = is_packable<kWidth, T>({p.x, p.y}, {p.width, p.x_stride, p.y_stride});
  launch(kName, is_packed ? gather_rows_kernel<T, kWidth> : gather_rows_kernel<T, 1>,
         ceil_div(p.rows * p.inner * (p.width / (is_packed ? kWidth : 1)), kThreads), kThreads, stream, p);
}

template void gather_rows<float>(const GatherRowsParams<float>&, cudaStream_t);

}  // namespace assay::fast
