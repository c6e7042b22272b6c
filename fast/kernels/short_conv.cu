#include "fast/kernels/conv_walk.cuh"
#include "fast/kernels/require.hpp"
#include "fast/kernels/short_conv.hpp"

namespace assay::fast {
namespace {

template <typename T, int kTaps, int kWidth>
__global__ void __launch_bounds__(kConvThreads, 4) short_conv_kernel(ShortConvParams<T> p, int64_t groups) {
  const auto is_real = [&](int64_t b, int64_t t) { return p.mask == nullptr || p.mask[b * p.mask_stride + t] != 0; };
  conv_walk<T, kTaps, kWidth>(
      p, groups,
      [&](int64_t b, int64_t t, int64_t channel, float(&value)[kWidth]) {
        const int64_t at = (b * p.length + t) * p.stride + channel;
        float gate[kWidth];
        load_pack<kWidth>(p.gate_in + at, gate);
        load_pack<kWidth>(p.x + at, value);
        const bool is_kept = is_real(b, t);
#pragma unroll
        for (int i = 0; i < kWidth; ++i) value[i] = is_kept ? gate[i] * value[i] : 0.0f;
      },
      [&](int64_t b, int64_t t, int64_t channel, float(&sum)[kWidth]) {
        const int64_t row = b * p.length + t, at = row * p.channels + channel;
        float gate[kWidth];
        load_pack<kWidth>(p.gate_out + row * p.stride + channel, gate);
        const bool is_kept = is_real(b, t);
#pragma unroll
        for (int i = 0; i < kWidth; ++i) sum[i] = is_kept ? sum[i] : 0.0f;
        if (p.conv_out != nullptr) store_pack<kWidth>(p.conv_out + at, sum);
#pragma unroll
        for (int i = 0; i < kWidth; ++i) sum[i] *= gate[i];
        store_pack<kWidth>(p.y + at, sum);
      });
}

template <typename T, int kTaps>
__global__ void short_conv_update_kernel(ShortConvUpdateParams<T> p) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * kConvThreads;
  for (int64_t item = static_cast<int64_t>(blockIdx.x) * kConvThreads + threadIdx.x; item < p.batch * p.channels;
       item += step) {
    const int64_t b = item / p.channels;
    const int64_t channel = item - b * p.channels;
    const int64_t at = b * p.stride + channel;
    const bool is_real = p.mask == nullptr || p.mask[b * p.mask_stride] != 0;
    const ConvTaps<T, kTaps, 1> taps(p.weight, p.bias, channel);
    T* state = p.state + item * kTaps;
    float window[kTaps];
#pragma unroll
    for (int j = 0; j < kTaps - 1; ++j) window[j] = to_float(state[j + 1]);
    window[kTaps - 1] = is_real ? to_float(p.gate_in[at]) * to_float(p.x[at]) : 0.0f;
    float sum = taps.bias[0];
#pragma unroll
    for (int j = 0; j < kTaps; ++j) {
      sum = fmaf(taps.weight[j][0], window[j], sum);
      state[j] = from_float<T>(window[j]);
    }
    if (!is_real) sum = 0.0f;
    if (p.conv_out != nullptr) p.conv_out[item] = from_float<T>(sum);
    p.y[item] = from_float<T>(to_float(p.gate_out[at]) * sum);
  }
}

template <typename T, int kTaps>
void start(const ShortConvParams<T>& p, cudaStream_t stream) {
  constexpr int kWidth = kPackWidth<T>;
  const bool is_packed = is_packable<kWidth, T>({p.gate_in, p.gate_out, p.x, p.y, p.conv_out}, {p.channels, p.stride});
  const ConvTiling tiling = conv_tiling(p.batch, p.length, is_packed ? p.channels / kWidth : p.channels);
  launch("short_conv", is_packed ? short_conv_kernel<T, kTaps, kWidth> : short_conv_kernel<T, kTaps, 1>, tiling.blocks,
         kConvThreads, stream, p, tiling.groups);
}

template <typename Params>
void require_operands(const char* name, const Params& p) {
  require_pointer(name, "gate_in", p.gate_in);
  require_pointer(name, "gate_out", p.gate_out);
  require_pointer(name, "x", p.x);
  require_pointer(name, "weight", p.weight);
  require_pointer(name, "y", p.y);
  require_range(name, "batch", p.batch, 1, kAnySize);
  require_range(name, "channels", p.channels, 1, kAnySize);
  require_range(name, "taps", p.taps, 1, 4);
  require_stride(name, "stride", p.stride, p.channels);
}

}  // namespace

template <typename T>
void short_conv(const ShortConvParams<T>& p, cudaStream_t stream) {
  require_operands("short_conv", p);
  require_range("short_conv", "length", p.length, 1, kAnySize);
  if (p.mask != nullptr) require_stride("short_conv", "mask_stride", p.mask_stride, p.length);
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
void short_conv_update(const ShortConvUpdateParams<T>& p, cudaStream_t stream) {
  constexpr const char* kName = "short_conv_update";
  require_operands(kName, p);
  require_pointer(kName, "state", p.state);
  if (p.mask != nullptr) require_stride(kName, "mask_stride", p.mask_stride, 1);
  constexpr void (*kKernels[])(ShortConvUpdateParams<T>) = {
      short_conv_update_kernel<T, 1>, short_conv_update_kernel<T, 2>, short_conv_update_kernel<T, 3>,
      short_conv_update_kernel<T, 4>};
  launch(kName, kKernels[p.taps - 1], ceil_div(p.batch * p.channels, kConvThreads), kConvThreads, stream, p);
}

template void short_conv<float>(const ShortConvParams<float>&, cudaStream_t);
template void short_conv_update<float>(const ShortConvUpdateParams<float>&, cudaStream_t);

}  // namespace assay::fast
