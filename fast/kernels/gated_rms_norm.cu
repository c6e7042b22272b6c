#include "fast/kernels/gated_rms_norm.hpp"
#include "fast/kernels/launch.cuh"
#include "fast/kernels/math.hpp"
#include "fast/kernels/reduce.cuh"
#include "fast/kernels/require.hpp"
#include "fast/kernels/row_threads.cuh"
#include "fast/kernels/storage.cuh"

namespace assay::fast {
namespace {

// One block a (row, group). A thread keeps its first kKept packs of x * silu(z) between the passes and computes the
// others again.
constexpr int kKept = 4;

template <typename T, int kWidth>
__global__ void gated_rms_norm_kernel(GatedRmsNormParams<T> p) {
  __shared__ float partial[kWarp];
  const int64_t group_width = p.width / p.groups;
  const int64_t packs = group_width / kWidth;
  const int step = static_cast<int>(blockDim.x);
  for (int64_t item = blockIdx.x; item < p.rows * p.groups; item += gridDim.x) {
    const int64_t row = item / p.groups;
    const int64_t first = (item % p.groups) * group_width;
    const T* x = p.x + row * p.width + first;
    const T* z = p.z + row * p.z_stride + first;

    auto gate = [&](int64_t pack, float(&u)[kWidth]) {
      float g[kWidth];
      load_pack<kWidth>(x + pack * kWidth, u);
      load_pack<kWidth>(z + pack * kWidth, g);
#pragma unroll
      for (int i = 0; i < kWidth; ++i) u[i] *= silu(g[i]);
    };
    float kept[kKept][kWidth];
    float squares = 0;
#pragma unroll
    for (int k = 0; k < kKept; ++k) {
      const int64_t pack = threadIdx.x + static_cast<int64_t>(k) * step;
      if (pack < packs) {
        gate(pack, kept[k]);
#pragma unroll
        for (int i = 0; i < kWidth; ++i) squares = fmaf(kept[k][i], kept[k][i], squares);
      }
    }
    for (int64_t pack = threadIdx.x + static_cast<int64_t>(kKept) * step; pack < packs; pack += step) {
      float u[kWidth];
      gate(pack, u);
#pragma unroll
      for (int i = 0; i < kWidth; ++i) squares = fmaf(u[i], u[i], squares);
    }

    const float mean = sum_block(squares, partial) / static_cast<float>(group_width);
    const float scale = 1.0f / sqrtf(mean + p.epsilon);

    auto write = [&](int64_t pack, const float(&u)[kWidth]) {
      float y[kWidth];
      load_pack<kWidth>(p.weight + first + pack * kWidth, y);
#pragma unroll
      for (int i = 0; i < kWidth; ++i) y[i] *= u[i] * scale;
      store_pack<kWidth>(p.y + row * p.width + first + pack * kWidth, y);
    };
#pragma unroll
    for (int k = 0; k < kKept; ++k) {
      const int64_t pack = threadIdx.x + static_cast<int64_t>(k) * step;
      if (pack < packs) write(pack, kept[k]);
    }
    for (int64_t pack = threadIdx.x + static_cast<int64_t>(kKept) * step; pack < packs; pack += step) {
      float u[kWidth];
      gate(pack, u);
      write(pack, u);
    }
  }
}

}  // namespace

template <typename T>
void gated_rms_norm(const GatedRmsNormParams<T>& p, cudaStream_t stream) {
  constexpr const char* kName = "gated_rms_norm";
  require_pointer(kName, "x", p.x);
  require_pointer(kName, "z", p.z);
  require_pointer(kName, "weight", p.weight);
  require_pointer(kName, "y", p.y);
  require_range(kName, "rows", p.rows, 1, kAnySize);
  require_range(kName, "width", p.width, 1, kAnySize);
  require_divides(kName, "groups", p.groups, "width", p.width);
  require_stride(kName, "z_stride", p.z_stride, p.width);
  constexpr int kWidth = kPackWidth<T>;
  const int64_t group_width = p.width / p.groups;
  const bool is_packed = is_packable<kWidth, T>({p.x, p.z, p.weight, p.y}, {p.width, group_width, p.z_stride});
  const int threads = row_threads(is_packed ? group_width / kWidth : group_width);
  launch(kName, is_packed ? gated_rms_norm_kernel<T, kWidth> : gated_rms_norm_kernel<T, 1>, p.rows * p.groups, threads,
         stream, p);
}

template void gated_rms_norm<float>(const GatedRmsNormParams<float>&, cudaStream_t);

}  // namespace assay::fast
