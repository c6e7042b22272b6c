#include "fast/kernels/gated_rms_norm.hpp"
#include "fast/kernels/launch.cuh"
#include "fast/kernels/math.hpp"
#include "fast/kernels/reduce.cuh"
#include "fast/kernels/require.hpp"
#include "fast/kernels/row_threads.cuh"
#include "fast/kernels/storage.cuh"

namespace assay::fast {
namespace {

// A thread keeps its first kKept packs between the two passes and reads the others again.
constexpr int kKept = 4;
constexpr int kWarpsOfNarrow = 4;

enum class Gate { kFirst, kLast };

// An item is a (row, group): a block's, or a warp's where groups are narrow (a head of 128 channels is one access a
// lane).
template <typename T, int kWidth, Gate kGate, bool kIsNarrow>
__global__ void gated_rms_norm_kernel(GatedRmsNormParams<T> p) {
  __shared__ float partial[kWarp];
  const int64_t group_width = p.width / p.groups;
  const int64_t packs = group_width / kWidth;
  const int step = kIsNarrow ? kWarp : static_cast<int>(blockDim.x);
  const int thread = static_cast<int>(threadIdx.x) % step;
  const int items_of_block = static_cast<int>(blockDim.x) / step;
  const int64_t items_of_grid = static_cast<int64_t>(gridDim.x) * items_of_block;
  for (int64_t item = static_cast<int64_t>(blockIdx.x) * items_of_block + threadIdx.x / step; item < p.rows * p.groups;
       item += items_of_grid) {
    const int64_t row = item / p.groups;
    const int64_t first = (item - row * p.groups) * group_width;
    const T* x = p.x + row * p.width + first;
    const T* z = p.z + row * p.z_stride + first;
    const T* weight = p.weight + (p.is_weight_shared ? 0 : first);
    T* y = p.y + row * p.width + first;

    // u: what is normed. gate: what its norm is multiplied by.
    auto read = [&](int64_t pack, float(&u)[kWidth], float(&gate)[kWidth]) {
      load_pack<kWidth>(x + pack * kWidth, u);
      load_pack<kWidth>(z + pack * kWidth, gate);
#pragma unroll
      for (int i = 0; i < kWidth; ++i) {
        gate[i] = silu(gate[i]);
        if constexpr (kGate == Gate::kFirst) u[i] *= gate[i];
      }
    };
    float kept[kKept][kWidth], kept_gate[kKept][kWidth];
    float squares = 0;
#pragma unroll
    for (int k = 0; k < kKept; ++k) {
      const int64_t pack = thread + static_cast<int64_t>(k) * step;
      if (pack < packs) {
        read(pack, kept[k], kept_gate[k]);
#pragma unroll
        for (int i = 0; i < kWidth; ++i) squares = fmaf(kept[k][i], kept[k][i], squares);
      }
    }
    for (int64_t pack = thread + static_cast<int64_t>(kKept) * step; pack < packs; pack += step) {
      float u[kWidth], gate[kWidth];
      read(pack, u, gate);
#pragma unroll
      for (int i = 0; i < kWidth; ++i) squares = fmaf(u[i], u[i], squares);
    }

    const float sum = kIsNarrow ? sum_lanes<kWarp>(squares) : sum_block(squares, partial);
    const float scale = 1.0f / sqrtf(sum / static_cast<float>(group_width) + p.epsilon);

    auto write = [&](int64_t pack, const float(&u)[kWidth], const float(&gate)[kWidth]) {
      float out[kWidth];
      load_pack<kWidth>(weight + pack * kWidth, out);
#pragma unroll
      for (int i = 0; i < kWidth; ++i) {
        out[i] *= u[i] * scale;
        if constexpr (kGate == Gate::kLast) out[i] *= gate[i];
      }
      store_pack<kWidth>(y + pack * kWidth, out);
    };
#pragma unroll
    for (int k = 0; k < kKept; ++k) {
      const int64_t pack = thread + static_cast<int64_t>(k) * step;
      if (pack < packs) write(pack, kept[k], kept_gate[k]);
    }
    for (int64_t pack = thread + static_cast<int64_t>(kKept) * step; pack < packs; pack += step) {
      float u[kWidth], gate[kWidth];
      read(pack, u, gate);
      write(pack, u, gate);
    }
  }
}

template <typename T, int kWidth, Gate kGate>
void start(const char* name, const GatedRmsNormParams<T>& p, cudaStream_t stream) {
  const int64_t items = p.rows * p.groups;
  const int64_t packs = p.width / p.groups / kWidth;
  const bool is_narrow = packs <= kKept * kWarp && items >= kWarpsOfNarrow;
  if (is_narrow) {
    launch(name, gated_rms_norm_kernel<T, kWidth, kGate, true>, ceil_div(items, kWarpsOfNarrow), kWarpsOfNarrow * kWarp,
           stream, p);
  } else {
    launch(name, gated_rms_norm_kernel<T, kWidth, kGate, false>, items, row_threads(packs), stream, p);
  }
}

template <Gate kGate, typename T>
void check_and_start(const char* name, const GatedRmsNormParams<T>& p, cudaStream_t stream) {
  require_pointer(name, "x", p.x);
  require_pointer(name, "z", p.z);
  require_pointer(name, "weight", p.weight);
  require_pointer(name, "y", p.y);
  require_range(name, "rows", p.rows, 1, kAnySize);
  require_range(name, "width", p.width, 1, kAnySize);
  require_divides(name, "groups", p.groups, "width", p.width);
  require_stride(name, "z_stride", p.z_stride, p.width);
  constexpr int kWidth = kPackWidth<T>;
  const bool is_packed = is_packable<kWidth, T>({p.x, p.z, p.weight, p.y}, {p.width, p.width / p.groups, p.z_stride});
  is_packed ? start<T, kWidth, kGate>(name, p, stream) : start<T, 1, kGate>(name, p, stream);
}

}  // namespace

template <typename T>
void gated_rms_norm(const GatedRmsNormParams<T>& p, cudaStream_t stream) {
  check_and_start<Gate::kFirst>("gated_rms_norm", p, stream);
}

template <typename T>
void rms_norm_gated(const GatedRmsNormParams<T>& p, cudaStream_t stream) {
  check_and_start<Gate::kLast>("rms_norm_gated", p, stream);
}

template void gated_rms_norm<float>(const GatedRmsNormParams<float>&, cudaStream_t);
template void rms_norm_gated<float>(const GatedRmsNormParams<float>&, cudaStream_t);

}  // namespace assay::fast
