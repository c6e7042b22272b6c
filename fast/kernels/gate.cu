#include "fast/kernels/gate.hpp"
#include "fast/kernels/launch.cuh"
#include "fast/kernels/math.hpp"
#include "fast/kernels/require.hpp"
#include "fast/kernels/storage.cuh"

namespace assay::fast {
namespace {

constexpr int kThreads = 256;

template <typename T, int kWidth>
__global__ void gate_kernel(GateParams<T> p) {
  const int64_t packs = p.width / kWidth;
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < p.rows * p.heads * packs; i += step) {
    const int64_t row_head = i / packs, row = row_head / p.heads;
    float x[kWidth], gate[kWidth];
    load_pack<kWidth>(p.x + i * kWidth, x);
    load_pack<kWidth>(p.gate + row * p.gate_stride + (row_head - row * p.heads) * p.gate_head_stride +
                          (i - row_head * packs) * kWidth,
                      gate);
#pragma unroll
    for (int k = 0; k < kWidth; ++k) x[k] *= sigmoid(gate[k]);
    store_pack<kWidth>(p.y + i * kWidth, x);
  }
}

}  // namespace

template <typename T>
void gate(const GateParams<T>& p, cudaStream_t stream) {
  constexpr const char* kName = "gate";
  require_pointer(kName, "x", p.x);
  require_pointer(kName, "gate", p.gate);
  require_pointer(kName, "y", p.y);
  require_range(kName, "rows", p.rows, 1, kAnySize);
  require_range(kName, "heads", p.heads, 1, kAnySize);
  require_range(kName, "width", p.width, 1, kAnySize);
  require_stride(kName, "gate_head_stride", p.gate_head_stride, p.width);
  require_stride(kName, "gate_stride", p.gate_stride, (p.heads - 1) * p.gate_head_stride + p.width);
  constexpr int kWidth = kPackWidth<T>;
  const bool is_packed = is_packable<kWidth, T>({p.x, p.gate, p.y}, {p.width, p.gate_stride, p.gate_head_stride});
  launch(kName, is_packed ? gate_kernel<T, kWidth> : gate_kernel<T, 1>,
         ceil_div(p.rows * p.heads * (p.width / (is_packed ? kWidth : 1)), kThreads), kThreads, stream, p);
}

template void gate<float>(const GateParams<float>&, cudaStream_t);

}  // namespace assay::fast
