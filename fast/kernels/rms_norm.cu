#include "fast/kernels/launch.cuh"
#include "fast/kernels/reduce.cuh"
#include "fast/kernels/require.hpp"
#include "fast/kernels/rms_norm.hpp"
#include "fast/kernels/row_threads.cuh"
#include "fast/kernels/storage.cuh"

namespace assay::fast {
namespace {

// One block a row. A thread keeps its first kKept packs in registers between the two passes and reads the others again.
constexpr int kKept = 4;

template <typename T, int kWidth, bool kHasResidual>
__global__ void rms_norm_kernel(RmsNormParams<T> p) {
  __shared__ float partial[kWarp];
  const int64_t packs = p.width / kWidth;
  const int step = static_cast<int>(blockDim.x);
  for (int64_t row = blockIdx.x; row < p.rows; row += gridDim.x) {
    const int64_t base = row * p.width;
    float kept[kKept][kWidth];
    float squares = 0;

    auto read = [&](int64_t pack, float(&s)[kWidth]) {
      const int64_t at = base + pack * kWidth;
      load_pack<kWidth>(p.x + at, s);
      if constexpr (kHasResidual) {
        float r[kWidth];
        load_pack<kWidth>(p.residual + at, r);
#pragma unroll
        for (int i = 0; i < kWidth; ++i) s[i] = to_float(from_float<T>(s[i] + r[i]));
        store_pack<kWidth>(p.sum + at, s);
      }
#pragma unroll
      for (int i = 0; i < kWidth; ++i) squares = fmaf(s[i], s[i], squares);
    };
#pragma unroll
    for (int k = 0; k < kKept; ++k) {
      const int64_t pack = threadIdx.x + static_cast<int64_t>(k) * step;
      if (pack < packs) read(pack, kept[k]);
    }
    for (int64_t pack = threadIdx.x + static_cast<int64_t>(kKept) * step; pack < packs; pack += step) {
      float s[kWidth];
      read(pack, s);
    }

    const float mean = sum_block(squares, partial) / static_cast<float>(p.width);
    const float scale = 1.0f / sqrtf(mean + p.epsilon);
    const float offset = p.is_zero_centred ? 1.0f : 0.0f;

    auto write = [&](int64_t pack, const float(&s)[kWidth]) {
      const int64_t at = pack * kWidth;
      float y[kWidth];
      load_pack<kWidth>(p.weight + at, y);
#pragma unroll
      for (int i = 0; i < kWidth; ++i) y[i] = (y[i] + offset) * (s[i] * scale);
      store_pack<kWidth>(p.y + base + at, y);
    };
#pragma unroll
    for (int k = 0; k < kKept; ++k) {
      const int64_t pack = threadIdx.x + static_cast<int64_t>(k) * step;
      if (pack < packs) write(pack, kept[k]);
    }
    for (int64_t pack = threadIdx.x + static_cast<int64_t>(kKept) * step; pack < packs; pack += step) {
      float s[kWidth];
      // The thread's own store: x may have been overwritten by sum.
      load_pack<kWidth>((kHasResidual ? p.sum : p.x) + base + pack * kWidth, s);
      write(pack, s);
    }
  }
}

template <typename T, int kWidth>
void start(const RmsNormParams<T>& p, cudaStream_t stream) {
  const int threads = row_threads(p.width / kWidth);
  if (p.residual != nullptr) {
    launch("rms_norm", rms_norm_kernel<T, kWidth, true>, p.rows, threads, stream, p);
  } else {
    launch("rms_norm", rms_norm_kernel<T, kWidth, false>, p.rows, threads, stream, p);
  }
}

}  // namespace

template <typename T>
void rms_norm(const RmsNormParams<T>& p, cudaStream_t stream) {
  constexpr const char* kName = "rms_norm";
  require_pointer(kName, "x", p.x);
  require_pointer(kName, "weight", p.weight);
  require_pointer(kName, "y", p.y);
  require_range(kName, "rows", p.rows, 1, kAnySize);
  require_range(kName, "width", p.width, 1, kAnySize);
  if ((p.residual == nullptr) != (p.sum == nullptr)) {
    throw InputError(kName, "residual and sum must be given together");
  }
  constexpr int kWidth = kPackWidth<T>;
  if (is_packable<kWidth, T>({p.x, p.residual, p.weight, p.y, p.sum}, {p.width})) {
    start<T, kWidth>(p, stream);
  } else {
    start<T, 1>(p, stream);
  }
}

template void rms_norm<float>(const RmsNormParams<float>&, cudaStream_t);

}  // namespace assay::fast
