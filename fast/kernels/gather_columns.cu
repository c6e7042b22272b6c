#include "fast/kernels/gather_columns.hpp"
#include "fast/kernels/launch.cuh"
#include "fast/kernels/math.hpp"
#include "fast/kernels/require.hpp"
#include "fast/kernels/storage.cuh"

namespace assay::fast {
namespace {

constexpr int kThreads = 256;

template <typename T>
__global__ void gather_columns_kernel(GatherColumnsParams<T> p) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < p.rows * p.width; i += step) {
    const int64_t row = i / p.width, column = i - row * p.width;
    const int32_t from = p.index[column];
    const bool is_inside = from >= 0 && from < p.source_width;
    p.y[row * p.y_stride + column] =
        is_inside ? p.x[row * p.x_stride + from] : from_float<T>(bits_to_float(0x7fc00000u));  // NaN
  }
}

}  // namespace

template <typename T>
void gather_columns(const GatherColumnsParams<T>& p, cudaStream_t stream) {
  constexpr const char* kName = "gather_columns";
  require_pointer(kName, "x", p.x);
  require_pointer(kName, "index", p.index);
  require_pointer(kName, "y", p.y);
  require_range(kName, "rows", p.rows, 1, kAnySize);
  require_range(kName, "source_width", p.source_width, 1, INT32_MAX);
  require_range(kName, "width", p.width, 1, kAnySize);
  require_stride(kName, "x_stride", p.x_stride, p.source_width);
  require_stride(kName, "y_stride", p.y_stride, p.width);
  launch(kName, gather_columns_kernel<T>, ceil_div(p.rows * p.width, kThreads), kThreads, stream, p);
}

template void gather_columns<float>(const GatherColumnsParams<float>&, cudaStream_t);

}  // namespace assay::fast
