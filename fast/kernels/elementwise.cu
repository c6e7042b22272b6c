#include "fast/kernels/elementwise.hpp"
#include "fast/kernels/launch.cuh"
#include "fast/kernels/math.hpp"
#include "fast/kernels/require.hpp"
#include "fast/kernels/storage.cuh"

namespace assay::fast {
namespace {

constexpr int kThreads = 256;

__device__ inline int64_t first_item() { return static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; }
__device__ inline int64_t item_step() { return static_cast<int64_t>(gridDim.x) * kThreads; }

template <typename T, int kWidth>
__global__ void mask_rows_kernel(MaskRowsParams<T> p) {
  const int64_t packs = p.width / kWidth;
  const int64_t count = p.batch * p.length * packs;
  for (int64_t i = first_item(); i < count; i += item_step()) {
    const int64_t row = i / packs;
    const int64_t b = row / p.length;
    float value[kWidth] = {};
    if (p.mask[b * p.mask_stride + (row - b * p.length)] != 0) load_pack<kWidth>(p.x + i * kWidth, value);
    store_pack<kWidth>(p.y + i * kWidth, value);
  }
}

template <typename T, int kWidth>
__global__ void residual_add_kernel(ResidualAddParams<T> p) {
  for (int64_t i = first_item(); i < p.count / kWidth; i += item_step()) {
    float x[kWidth], r[kWidth];
    load_pack<kWidth>(p.x + i * kWidth, x);
    load_pack<kWidth>(p.residual + i * kWidth, r);
#pragma unroll
    for (int k = 0; k < kWidth; ++k) x[k] += r[k];
    store_pack<kWidth>(p.y + i * kWidth, x);
  }
}

template <typename T, int kWidth>
__global__ void silu_gate_kernel(SiluGateParams<T> p) {
  const int64_t packs = p.width / kWidth;
  for (int64_t i = first_item(); i < p.rows * packs; i += item_step()) {
    const int64_t row = i / packs;
    float x[kWidth], z[kWidth];
    load_pack<kWidth>(p.x + i * kWidth, x);
    load_pack<kWidth>(p.z + row * p.z_stride + (i - row * packs) * kWidth, z);
#pragma unroll
    for (int k = 0; k < kWidth; ++k) x[k] *= silu(z[k]);
    store_pack<kWidth>(p.y + i * kWidth, x);
  }
}

}  // namespace

template <typename T>
void mask_rows(const MaskRowsParams<T>& p, cudaStream_t stream) {
  constexpr const char* kName = "mask_rows";
  require_pointer(kName, "x", p.x);
  require_pointer(kName, "y", p.y);
  require_pointer(kName, "mask", p.mask);
  require_range(kName, "batch", p.batch, 1, kAnySize);
  require_range(kName, "length", p.length, 1, kAnySize);
  require_range(kName, "width", p.width, 1, kAnySize);
  require_stride(kName, "mask_stride", p.mask_stride, p.length);
  constexpr int kWidth = kPackWidth<T>;
  const bool is_packed = is_packable<kWidth, T>({p.x, p.y}, {p.width});
  const int64_t items = p.batch * p.length * (is_packed ? p.width / kWidth : p.width);
  launch(kName, is_packed ? mask_rows_kernel<T, kWidth> : mask_rows_kernel<T, 1>, ceil_div(items, kThreads), kThreads,
         stream, p);
}

template <typename T>
void residual_add(const ResidualAddParams<T>& p, cudaStream_t stream) {
  constexpr const char* kName = "residual_add";
  require_pointer(kName, "x", p.x);
  require_pointer(kName, "residual", p.residual);
  require_pointer(kName, "y", p.y);
  require_range(kName, "count", p.count, 1, kAnySize);
  constexpr int kWidth = kPackWidth<T>;
  const bool is_packed = is_packable<kWidth, T>({p.x, p.residual, p.y}, {p.count});
  const int64_t items = is_packed ? p.count / kWidth : p.count;
  launch(kName, is_packed ? residual_add_kernel<T, kWidth> : residual_add_kernel<T, 1>, ceil_div(items, kThreads),
         kThreads, stream, p);
}

template <typename T>
void silu_gate(const SiluGateParams<T>& p, cudaStream_t stream) {
  constexpr const char* kName = "silu_gate";
  require_pointer(kName, "x", p.x);
  require_pointer(kName, "z", p.z);
  require_pointer(kName, "y", p.y);
  require_range(kName, "rows", p.rows, 1, kAnySize);
  require_range(kName, "width", p.width, 1, kAnySize);
  require_stride(kName, "z_stride", p.z_stride, p.width);
  constexpr int kWidth = kPackWidth<T>;
  const bool is_packed = is_packable<kWidth, T>({p.x, p.z, p.y}, {p.width, p.z_stride});
  const int64_t items = p.rows * (is_packed ? p.width / kWidth : p.width);
  launch(kName, is_packed ? silu_gate_kernel<T, kWidth> : silu_gate_kernel<T, 1>, ceil_div(items, kThreads), kThreads,
         stream, p);
}

template void mask_rows<float>(const MaskRowsParams<float>&, cudaStream_t);
template void residual_add<float>(const ResidualAddParams<float>&, cudaStream_t);
template void silu_gate<float>(const SiluGateParams<float>&, cudaStream_t);

}  // namespace assay::fast
