#include "fast/kernels/launch.cuh"
#include "fast/kernels/math.hpp"
#include "fast/kernels/reduce.cuh"
#include "fast/kernels/ssd.hpp"
#include "fast/kernels/ssd_require.hpp"
#include "fast/kernels/storage.cuh"

namespace assay::fast {
namespace {

constexpr int kThreads = 128;
constexpr int kRows = 4;  // rows [p] of a head's state that a warp updates together: loads in flight

template <typename T, int kWidth>
__global__ void __launch_bounds__(kThreads) ssd_update_kernel(SsdUpdateParams<T> p) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  constexpr int kWarps = kThreads / kWarp;
  const int64_t packs = p.states / kWidth;
  const int64_t row_tiles = ceil_div(p.width, kRows);
  const int64_t count = p.batch * p.heads * row_tiles;
  // An item is a warp's, so the loop is uniform in a warp.
  for (int64_t item = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / kWarp; item < count;
       item += static_cast<int64_t>(gridDim.x) * kWarps) {
    const int64_t batch_head = item / row_tiles;
    const int64_t first = (item - batch_head * row_tiles) * kRows;
    const int64_t batch = batch_head / p.heads;
    const int64_t head = batch_head - batch * p.heads;
    const int64_t group = head / (p.heads / p.groups);
    const T* b = p.b + batch * p.b_stride + group * p.states;
    const T* c = p.c + batch * p.c_stride + group * p.states;
    float* state = p.state + (batch_head * p.width + first) * p.states;

    float d = to_float(p.dt[batch * p.dt_stride + head]);
    if (p.dt_bias != nullptr) d = clamp(softplus(d + to_float(p.dt_bias[head])), p.dt_min, p.dt_max);
    const float decay = precise_exp(d * p.a[head]);
    float x[kRows], y[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      x[r] = first + r < p.width ? to_float(p.x[batch * p.x_stride + head * p.width + first + r]) : 0.0f;
      y[r] = 0.0f;
    }
    for (int64_t pack = lane; pack < packs; pack += kWarp) {
      const int64_t n = pack * kWidth;
      float h[kRows][kWidth], b_pack[kWidth], c_pack[kWidth];
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        if (first + r < p.width) load_pack<kWidth>(state + r * p.states + n, h[r]);
      }
      load_pack<kWidth>(b + n, b_pack);
      load_pack<kWidth>(c + n, c_pack);
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        if (first + r >= p.width) continue;
#pragma unroll
        for (int k = 0; k < kWidth; ++k) {
          h[r][k] = fmaf(decay, h[r][k], d * x[r] * b_pack[k]);
          y[r] = fmaf(h[r][k], c_pack[k], y[r]);
        }
        store_pack<kWidth>(state + r * p.states + n, h[r]);
      }
    }
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      y[r] = sum_lanes<kWarp>(y[r]);
      if (lane == 0 && first + r < p.width) {
        p.y[batch_head * p.width + first + r] = from_float<T>(fmaf(p.skip[head], x[r], y[r]));
      }
    }
    if (lane == 0 && first == 0 && p.dt_out != nullptr) p.dt_out[batch_head] = from_float<T>(d);
  }
}

}  // namespace

template <typename T>
void ssd_update(const SsdUpdateParams<T>& p, cudaStream_t stream) {
  constexpr const char* kName = "ssd_update";
  require_ssd_sizes(kName, p);
  require_ssd_operands(kName, p);
  require_pointer(kName, "state", p.state);
  constexpr int kWidth = 4;
  const bool is_packed =
      is_packable<kWidth, T>({p.b, p.c}, {p.b_stride, p.c_stride}) && is_packable<kWidth, float>({p.state}, {p.states});
  launch(kName, is_packed ? ssd_update_kernel<T, kWidth> : ssd_update_kernel<T, 1>,
         ceil_div(p.batch * p.heads * ceil_div(p.width, kRows), kThreads / kWarp), kThreads, stream, p);
}

template void ssd_update<float>(const SsdUpdateParams<float>&, cudaStream_t);

}  // namespace assay::fast
