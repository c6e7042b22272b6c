#include "fast/kernels/causal_conv1d.hpp"
#include "fast/kernels/conv_walk.cuh"
#include "fast/kernels/launch.cuh"
#include "fast/kernels/math.hpp"
#include "fast/kernels/require.hpp"
#include "fast/kernels/storage.cuh"

namespace assay::fast {
namespace {

template <typename T, int kTaps, int kWidth>
__global__ void causal_conv1d_kernel(CausalConv1dParams<T> p, int64_t groups) {
  conv_walk<T, kTaps, kWidth>(
      p, groups,
      [&](int64_t b, int64_t t, int64_t channel, float(&value)[kWidth]) {
        load_pack<kWidth>(p.x + (b * p.length + t) * p.x_stride + channel, value);
      },
      [&](int64_t b, int64_t t, int64_t channel, float(&sum)[kWidth]) {
        const bool is_real = p.mask == nullptr || p.mask[b * p.mask_stride + t] != 0;
#pragma unroll
        for (int i = 0; i < kWidth; ++i) sum[i] = is_real ? (p.has_silu ? silu(sum[i]) : sum[i]) : 0.0f;
        store_pack<kWidth>(p.y + (b * p.length + t) * p.channels + channel, sum);
      });
}

template <typename T, int kTaps>
__global__ void causal_conv1d_update_kernel(CausalConv1dUpdateParams<T> p) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * kConvThreads;
  for (int64_t item = static_cast<int64_t>(blockIdx.x) * kConvThreads + threadIdx.x; item < p.batch * p.channels;
       item += step) {
    const int64_t b = item / p.channels;
    const int64_t channel = item - b * p.channels;
    const ConvTaps<T, kTaps, 1> taps(p.weight, p.bias, channel);
    T* state = p.state + item * kTaps;
    float window[kTaps];
#pragma unroll
    for (int j = 0; j < kTaps - 1; ++j) window[j] = to_float(state[j + 1]);
    window[kTaps - 1] = to_float(p.x[b * p.x_stride + channel]);
    float sum = taps.bias[0];
#pragma unroll
    for (int j = 0; j < kTaps; ++j) {
      sum = fmaf(taps.weight[j][0], window[j], sum);
      state[j] = from_float<T>(window[j]);
    }
    p.y[item] = from_float<T>(p.has_silu ? silu(sum) : sum);
  }
}

template <typename T, int kTaps>
void start(const CausalConv1dParams<T>& p, cudaStream_t stream) {
  constexpr int kWidth = kPackWidth<T>;
  const bool is_packed = is_packable<kWidth, T>({p.x, p.y}, {p.channels, p.x_stride});
  const ConvTiling tiling = conv_tiling(p.batch, p.length, is_packed ? p.channels / kWidth : p.channels);
  launch("causal_conv1d", is_packed ? causal_conv1d_kernel<T, kTaps, kWidth> : causal_conv1d_kernel<T, kTaps, 1>,
         tiling.blocks, kConvThreads, stream, p, tiling.groups);
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
  switch (p.taps) {
    case 1:
      return start<T, 1>(p, stream);
    case 2:
      return start<T, 2>(p, stream);
    case 3:
      return start<T, 3>(p, stream);
    default:
      return start<T, 4>(p, stream);
  }
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
  constexpr void (*kKernels[])(CausalConv1dUpdateParams<T>) = {
      causal_conv1d_update_kernel<T, 1>, causal_conv1d_update_kernel<T, 2>, causal_conv1d_update_kernel<T, 3>,
      causal_conv1d_update_kernel<T, 4>};
  launch(kName, kKernels[p.taps - 1], ceil_div(p.batch * p.channels, kConvThreads), kConvThreads, stream, p);
}

template void causal_conv1d<float>(const CausalConv1dParams<float>&, cudaStream_t);
template void causal_conv1d_update<float>(const CausalConv1dUpdateParams<float>&, cudaStream_t);

}  // namespace assay::fast
