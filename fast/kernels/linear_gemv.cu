#include "fast/kernels/launch.cuh"
#include "fast/kernels/linear_gemv.hpp"
#include "fast/kernels/reduce.cuh"
#include "fast/kernels/require.hpp"
#include "fast/kernels/storage.cuh"

namespace assay::fast {
namespace {

constexpr int kThreads = 128;
constexpr int kWarps = kThreads / kWarp;

// A warp takes kOut neighbouring rows of the weight through all of x, which then comes from the first-level cache.
template <typename T, int kWidth, int kRows, int kOut>
__global__ void __launch_bounds__(kThreads) linear_gemv_kernel(LinearGemvParams<T> p) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int64_t packs = p.in / kWidth;
  const int64_t tiles = ceil_div(p.out, kOut);
  for (int64_t tile = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / kWarp; tile < tiles;
       tile += static_cast<int64_t>(gridDim.x) * kWarps) {
    const T* weight[kOut];
#pragma unroll
    for (int o = 0; o < kOut; ++o) weight[o] = p.weight + min(tile * kOut + o, p.out - 1) * p.in;
    float sum[kOut][kRows] = {};
#pragma unroll 4
    for (int64_t pack = lane; pack < packs; pack += kWarp) {
      float w[kOut][kWidth];
#pragma unroll
      for (int o = 0; o < kOut; ++o) load_pack<kWidth>(weight[o] + pack * kWidth, w[o]);
#pragma unroll
      for (int t = 0; t < kRows; ++t) {
        if (t >= p.rows) continue;
        float x[kWidth];
        load_pack<kWidth>(p.x + t * p.x_stride + pack * kWidth, x);
#pragma unroll
        for (int o = 0; o < kOut; ++o) {
#pragma unroll
          for (int i = 0; i < kWidth; ++i) sum[o][t] = fmaf(w[o][i], x[i], sum[o][t]);
        }
      }
    }
#pragma unroll
    for (int o = 0; o < kOut; ++o) {
      const int64_t column = tile * kOut + o;
#pragma unroll
      for (int t = 0; t < kRows; ++t) {
        float total = sum_lanes<kWarp>(sum[o][t]);
        if (lane != t || column >= p.out || t >= p.rows) continue;
        T* y = p.y + t * p.y_stride + column;
        if (p.bias != nullptr) total += to_float(p.bias[column]);
        if (p.accumulate) total += to_float(*y);
        *y = from_float<T>(total);
      }
    }
  }
}

template <typename T, int kRows, int kOut>
void start(const LinearGemvParams<T>& p, cudaStream_t stream) {
  constexpr int kWidth = kPackWidth<T>;
  const bool is_packed = is_packable<kWidth, T>({p.x, p.weight}, {p.in, p.x_stride});
  launch("linear_gemv", is_packed ? linear_gemv_kernel<T, kWidth, kRows, kOut> : linear_gemv_kernel<T, 1, kRows, kOut>,
         ceil_div(ceil_div(p.out, kOut), kWarps), kThreads, stream, p);
}

}  // namespace

template <typename T>
void linear_gemv(const LinearGemvParams<T>& p, cudaStream_t stream) {
  constexpr const char* kName = "linear_gemv";
  require_pointer(kName, "x", p.x);
  require_pointer(kName, "weight", p.weight);
  require_pointer(kName, "y", p.y);
  require_range(kName, "rows", p.rows, 1, kGemvRows);
  require_range(kName, "in", p.in, 1, kAnySize);
  require_range(kName, "out", p.out, 1, kAnySize);
  require_stride(kName, "x_stride", p.x_stride, p.in);
  require_stride(kName, "y_stride", p.y_stride, p.out);
  // More columns a warp where more rows of x would be read again for each.
  if (p.rows == 1) {
    start<T, 1, 1>(p, stream);
  } else if (p.rows == 2) {
    start<T, 2, 2>(p, stream);
  } else if (p.rows <= 4) {
    start<T, 4, 2>(p, stream);
  } else {
    start<T, 8, 4>(p, stream);
  }
}

template void linear_gemv<float>(const LinearGemvParams<float>&, cudaStream_t);

}  // namespace assay::fast
