#include "fast/kernels/head_norm.hpp"
#include "fast/kernels/launch.cuh"
#include "fast/kernels/reduce.cuh"
#include "fast/kernels/require.hpp"
#include "fast/kernels/storage.cuh"

namespace assay::fast {
namespace {

constexpr int kThreads = 128;
constexpr int kKept = 4;  // packs that a lane keeps between the two passes; it reads the others again

// divisor: of the sum of squares. offset: what a weight is added to; without weights it is the factor itself.
struct Scaling {
  float divisor, epsilon, offset;
};

// A warp a (row, head).
template <typename T, int kWidth>
__global__ void __launch_bounds__(kThreads)
    head_norm_kernel(const T* x, int64_t x_stride, const T* weight, T* y, int64_t y_stride, int64_t rows, int64_t heads,
                     int64_t width, Scaling scaling) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  constexpr int kWarps = kThreads / kWarp;
  const int64_t packs = width / kWidth;
  for (int64_t item = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / kWarp; item < rows * heads;
       item += static_cast<int64_t>(gridDim.x) * kWarps) {
    const int64_t row = item / heads;
    const int64_t first = (item - row * heads) * width;
    const T* from = x + row * x_stride + first;
    T* to = y + row * y_stride + first;
    float kept[kKept][kWidth];
    float squares = 0;
#pragma unroll
    for (int k = 0; k < kKept; ++k) {
      const int64_t pack = lane + static_cast<int64_t>(k) * kWarp;
      if (pack >= packs) continue;
      load_pack<kWidth>(from + pack * kWidth, kept[k]);
#pragma unroll
      for (int i = 0; i < kWidth; ++i) squares = fmaf(kept[k][i], kept[k][i], squares);
    }
    for (int64_t pack = lane + static_cast<int64_t>(kKept) * kWarp; pack < packs; pack += kWarp) {
      float value[kWidth];
      load_pack<kWidth>(from + pack * kWidth, value);
#pragma unroll
      for (int i = 0; i < kWidth; ++i) squares = fmaf(value[i], value[i], squares);
    }
    const float scale = 1.0f / sqrtf(sum_lanes<kWarp>(squares) / scaling.divisor + scaling.epsilon);

    auto write = [&](int64_t pack, const float(&value)[kWidth]) {
      float factor[kWidth] = {};
      if (weight != nullptr) load_pack<kWidth>(weight + pack * kWidth, factor);
#pragma unroll
      for (int i = 0; i < kWidth; ++i) factor[i] = (factor[i] + scaling.offset) * (value[i] * scale);
      store_pack<kWidth>(to + pack * kWidth, factor);
    };
#pragma unroll
    for (int k = 0; k < kKept; ++k) {
      const int64_t pack = lane + static_cast<int64_t>(k) * kWarp;
      if (pack < packs) write(pack, kept[k]);
    }
    for (int64_t pack = lane + static_cast<int64_t>(kKept) * kWarp; pack < packs; pack += kWarp) {
      float value[kWidth];
      load_pack<kWidth>(from + pack * kWidth, value);
      write(pack, value);
    }
  }
}

template <typename T, typename Params>
void start(const char* name, const Params& p, const T* weight, const Scaling& scaling, cudaStream_t stream) {
  require_pointer(name, "x", p.x);
  require_pointer(name, "y", p.y);
  require_range(name, "rows", p.rows, 1, kAnySize);
  require_range(name, "heads", p.heads, 1, kAnySize);
  require_range(name, "width", p.width, 1, kAnySize);
  require_stride(name, "x_stride", p.x_stride, p.heads * p.width);
  require_stride(name, "y_stride", p.y_stride, p.heads * p.width);
  constexpr int kWidth = kPackWidth<T>;
  const bool is_packed = is_packable<kWidth, T>({p.x, weight, p.y}, {p.x_stride, p.y_stride, p.width});
  launch(name, is_packed ? head_norm_kernel<T, kWidth> : head_norm_kernel<T, 1>,
         ceil_div(p.rows * p.heads, kThreads / kWarp), kThreads, stream, p.x, p.x_stride, weight, p.y, p.y_stride,
         p.rows, p.heads, p.width, scaling);
}

}  // namespace

template <typename T>
void head_rms_norm(const HeadRmsNormParams<T>& p, cudaStream_t stream) {
  const float offset = p.weight == nullptr || p.is_zero_centred ? 1.0f : 0.0f;
  start("head_rms_norm", p, p.weight, {static_cast<float>(p.width), p.epsilon, offset}, stream);
}

template <typename T>
void l2norm(const L2NormParams<T>& p, cudaStream_t stream) {
  start<T>("l2norm", p, nullptr, {1.0f, p.epsilon, p.scale}, stream);
}

template void head_rms_norm<float>(const HeadRmsNormParams<float>&, cudaStream_t);
template void l2norm<float>(const L2NormParams<float>&, cudaStream_t);

}  // namespace assay::fast
