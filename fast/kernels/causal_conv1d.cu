#include "fast/kernels/causal_conv1d.hpp"
#include "fast/kernels/conv_walk.cuh"
#include "fast/kernels/launch.cuh"
#include "fast/kernels/require.hpp"
#include "fast/kernels/storage.cuh"

namespace assay::fast {
namespace {

constexpr int kTile = 16;

// By the ex2 and the reciprocal of the hardware. The update takes it as well, so that steps repeat a sequence's bits.
__device__ inline float quick_silu(float x) {
  float decay, inverse;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(decay) : "f"(x * -1.44269504f));
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(1.0f + decay));
  return x * inverse;
}

template <typename T, int kTaps, int kWidth>
__global__ void __launch_bounds__(kConvThreads, 5) causal_conv1d_kernel(CausalConv1dParams<T> p) {
  const T* const inputs[] = {p.x};
  conv_walk<kTaps, kWidth, kTile>(
      p, inputs, p.x_stride,
      [](const float(&read)[1][kWidth], bool, float(&value)[kWidth]) {
#pragma unroll
        for (int i = 0; i < kWidth; ++i) value[i] = read[0][i];
      },
      [&](int64_t out, const float(&)[1][kWidth], bool is_real, float(&sum)[kWidth]) {
#pragma unroll
        for (int i = 0; i < kWidth; ++i) sum[i] = is_real ? sum[i] : 0.0f;
        if (p.has_silu) {
#pragma unroll
          for (int i = 0; i < kWidth; ++i) sum[i] = quick_silu(sum[i]);
        }
        store_pack<kWidth>(p.y + out, sum);
      });
}

template <typename T, int kTaps, bool kIsPacked>
__global__ void __launch_bounds__(kConvThreads) causal_conv1d_update_kernel(CausalConv1dUpdateParams<T> p) {
  conv_update<kTaps, kIsPacked>(
      p, [&](int64_t b, int64_t channel) { return to_float(p.x[b * p.x_stride + channel]); },
      [&](int64_t item, float sum) { p.y[item] = from_float<T>(p.has_silu ? quick_silu(sum) : sum); });
}

}  // namespace

template <typename T>
void causal_conv1d(const CausalConv1dParams<T>& p, cudaStream_t stream) {
  constexpr const char* kName = "causal_conv1d";
  require_pointer(kName, "x", p.x);
  require_pointer(kName, "weight", p.weight);
  require_pointer(kName, "y", p.y);
  require_range(kName, "batch", p.batch, 1, kAnySize);
  require_range(kName, "length", p.length, 1, kAnySize);
  require_range(kName, "channels", p.channels, 1, kAnySize);
  require_range(kName, "taps", p.taps, 1, 4);
  require_stride(kName, "x_stride", p.x_stride, p.channels);
  if (p.mask != nullptr) require_stride(kName, "mask_stride", p.mask_stride, p.length);
  constexpr int kWidth = kPackWidth<T>;
  const bool is_packed = is_packable<kWidth, T>({p.x, p.weight, p.bias, p.y}, {p.channels, p.x_stride});
  with_taps(p.taps, [&]<int kTaps>() {
    launch(kName, is_packed ? causal_conv1d_kernel<T, kTaps, kWidth> : causal_conv1d_kernel<T, kTaps, 1>,
           conv_blocks(p.batch, p.length, is_packed ? p.channels / kWidth : p.channels, kTile), kConvThreads, stream,
           p);
  });
}

template <typename T>
void causal_conv1d_update(const CausalConv1dUpdateParams<T>& p, cudaStream_t stream) {
  constexpr const char* kName = "causal_conv1d_update";
  require_pointer(kName, "x", p.x);
  require_pointer(kName, "weight", p.weight);
  require_pointer(kName, "state", p.state);
  require_pointer(kName, "y", p.y);
  require_range(kName, "batch", p.batch, 1, kAnySize);
  require_range(kName, "channels", p.channels, 1, kAnySize);
  require_range(kName, "taps", p.taps, 1, 4);
  require_stride(kName, "x_stride", p.x_stride, p.channels);
  with_taps(p.taps, [&]<int kTaps>() {
    launch(kName,
           is_run<kTaps, T>(p.weight, p.state) ? causal_conv1d_update_kernel<T, kTaps, kIsRun<kTaps>>
                                               : causal_conv1d_update_kernel<T, kTaps, false>,
           ceil_div(p.batch * p.channels, kConvThreads), kConvThreads, stream, p);
  });
}

template void causal_conv1d<float>(const CausalConv1dParams<float>&, cudaStream_t);
template void causal_conv1d_update<float>(const CausalConv1dUpdateParams<float>&, cudaStream_t);

}  // namespace assay::fast
