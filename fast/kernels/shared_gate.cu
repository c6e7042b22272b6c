#include "fast/kernels/launch.cuh"
#include "fast/kernels/math.hpp"
#include "fast/kernels/require.hpp"
#include "fast/kernels/shared_gate.hpp"
#include "fast/kernels/storage.cuh"

namespace assay::fast {
namespace {

constexpr int kThreads = 256;

template <typename T, int kWidth>
__global__ void shared_gate_kernel(SharedGateParams<T> p) {
  const int64_t packs = p.width / kWidth;
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < p.rows * packs; i += step) {
    const float weight = sigmoid(to_float(p.gate[i / packs * p.gate_stride]));
    float x[kWidth], sum[kWidth] = {};
    load_pack<kWidth>(p.x + i * kWidth, x);
    if (p.residual != nullptr) load_pack<kWidth>(p.residual + i * kWidth, sum);
#pragma unroll
    for (int k = 0; k < kWidth; ++k) sum[k] = fmaf(weight, x[k], sum[k]);
    store_pack<kWidth>(p.y + i * kWidth, sum);
  }
}

}  // namespace

template <typename T>
void shared_gate(const SharedGateParams<T>& p, cudaStream_t stream) {
  constexpr const char* kName = "shared_gate";
  require_pointer(kName, "x", p.x);
  require_pointer(kName, "gate", p.gate);
  require_pointer(kName, "y", p.y);
  require_range(kName, "rows", p.rows, 1, kAnySize);
  require_range(kName, "width", p.width, 1, kAnySize);
  require_stride(kName, "gate_stride", p.gate_stride, 1);
  constexpr int kWidth = kPackWidth<T>;
  const bool is_packed = is_packable<kWidth, T>({p.x, p.residual, p.y}, {p.width});
  launch(kName, is_packed ? shared_gate_kernel<T, kWidth> : shared_gate_kernel<T, 1>,
         ceil_div(p.rows * (p.width / (is_packed ? kWidth : 1)), kThreads), kThreads, stream, p);
}

template void shared_gate<float>(const SharedGateParams<float>&, cudaStream_t);

}  // namespace assay::fast
