#include "fast/kernels/launch.cuh"
#include "fast/kernels/reduce.cuh"
#include "fast/kernels/require.hpp"
#include "fast/kernels/rms_norm.hpp"
#include "fast/kernels/row_tile.cuh"
#include "fast/kernels/storage.cuh"

namespace assay::fast {
namespace {

// One block a row. The last tile of a row, which is all of it up to 4096 accesses, is read once.
template <typename T, int kWidth, int kPacks, bool kHasResidual>
__global__ void __launch_bounds__(kMaxRowThreads) rms_norm_kernel(RmsNormParams<T> p) {
  __shared__ float partial[kWarp];
  const int64_t packs = p.width / kWidth;
  const int team = static_cast<int>(blockDim.x), thread = static_cast<int>(threadIdx.x);
  const int64_t step = static_cast<int64_t>(team) * kPacks;
  for (int64_t row = blockIdx.x; row < p.rows; row += gridDim.x) {
    const int64_t base = row * p.width;
    float tile[kPacks][kWidth];
    float squares = 0;
    int64_t first = 0;
    for (;; first += step) {
      const int64_t at = base + first * kWidth;
      load_tile(p.x + at, packs - first, thread, team, tile);
      if constexpr (kHasResidual) {
        float other[kPacks][kWidth];
        load_tile(p.residual + at, packs - first, thread, team, other);
#pragma unroll
        for (int k = 0; k < kPacks; ++k) {
#pragma unroll
          for (int i = 0; i < kWidth; ++i) tile[k][i] = to_float(from_float<T>(tile[k][i] + other[k][i]));
        }
        store_tile(p.sum + at, packs - first, thread, team, tile);
      }
      squares += sum_squares(tile);
      if (first + step >= packs) break;
    }
    float weight[kPacks][kWidth];
    load_tile(p.weight + first * kWidth, packs - first, thread, team, weight);

    const float mean = sum_block(squares, partial) / static_cast<float>(p.width);
    const float scale = 1.0f / sqrtf(mean + p.epsilon);
    const float offset = p.is_zero_centred ? 1.0f : 0.0f;
    for (;;) {
#pragma unroll
      for (int k = 0; k < kPacks; ++k) {
#pragma unroll
        for (int i = 0; i < kWidth; ++i) tile[k][i] = (weight[k][i] + offset) * (tile[k][i] * scale);
      }
      store_tile(p.y + base + first * kWidth, packs - first, thread, team, tile);
      if (first == 0) break;
      first -= step;
      // The thread's own store: x may have been overwritten by sum.
      load_tile((kHasResidual ? p.sum : p.x) + base + first * kWidth, packs - first, thread, team, tile);
      load_tile(p.weight + first * kWidth, packs - first, thread, team, weight);
    }
  }
}

template <typename T, int kWidth, int kPacks>
void start(const RmsNormParams<T>& p, cudaStream_t stream) {
  launch("rms_norm",
         p.residual != nullptr ? rms_norm_kernel<T, kWidth, kPacks, true> : rms_norm_kernel<T, kWidth, kPacks, false>,
         p.rows, row_threads<kPacks>(p.width / kWidth), stream, p);
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
  if (!is_packable<kWidth, T>({p.x, p.residual, p.weight, p.y, p.sum}, {p.width})) {
    start<T, 1, 8>(p, stream);
  } else if (p.width / kWidth <= 4 * kMaxRowThreads) {
    start<T, kWidth, 4>(p, stream);
  } else {
    start<T, kWidth, 8>(p, stream);
  }
}

template void rms_norm<float>(const RmsNormParams<float>&, cudaStream_t);

}  // namespace assay::fast
