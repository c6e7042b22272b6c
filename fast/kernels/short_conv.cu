#include "fast/kernels/conv_walk.cuh"
#include "fast/kernels/require.hpp"
#include "fast/kernels/short_conv.hpp"

namespace assay::fast {
namespace {

constexpr int kTile = 8;

template <typename T, int kTaps, int kWidth>
__global__ void __launch_bounds__(kConvThreads, 4) short_conv_kernel(ShortConvParams<T> p) {
  const T* const inputs[] = {p.gate_in, p.x, p.gate_out};
  conv_walk<kTaps, kWidth, kTile>(
      p, inputs, p.stride,
      [](const float(&read)[3][kWidth], bool is_real, float(&value)[kWidth]) {
#pragma unroll
        for (int i = 0; i < kWidth; ++i) value[i] = is_real ? read[0][i] * read[1][i] : 0.0f;
      },
      [&](int64_t out, const float(&read)[3][kWidth], bool is_real, float(&sum)[kWidth]) {
#pragma unroll
        for (int i = 0; i < kWidth; ++i) sum[i] = is_real ? sum[i] : 0.0f;
        if (p.conv_out != nullptr) store_pack<kWidth>(p.conv_out + out, sum);
#pragma unroll
        for (int i = 0; i < kWidth; ++i) sum[i] *= read[2][i];
        store_pack<kWidth>(p.y + out, sum);
      });
}

template <typename T, int kTaps, bool kIsPacked>
__global__ void __launch_bounds__(kConvThreads) short_conv_update_kernel(ShortConvUpdateParams<T> p) {
  bool is_real = true;
  float gate = 0;
  conv_update<kTaps, kIsPacked>(
      p,
      [&](int64_t b, int64_t channel) {
        const int64_t at = b * p.stride + channel;
        is_real = p.mask == nullptr || p.mask[b * p.mask_stride] != 0;
        gate = to_float(p.gate_out[at]);
        return is_real ? to_float(p.gate_in[at]) * to_float(p.x[at]) : 0.0f;
      },
      [&](int64_t item, float sum) {
        if (!is_real) sum = 0.0f;
        if (p.conv_out != nullptr) p.conv_out[item] = from_float<T>(sum);
        p.y[item] = from_float<T>(gate * sum);
      });
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
  constexpr int kWidth = kPackWidth<T>;
  const bool is_packed =
      is_packable<kWidth, T>({p.gate_in, p.gate_out, p.x, p.weight, p.bias, p.y, p.conv_out}, {p.channels, p.stride});
  with_taps(p.taps, [&]<int kTaps>() {
    launch("short_conv", is_packed ? short_conv_kernel<T, kTaps, kWidth> : short_conv_kernel<T, kTaps, 1>,
           conv_blocks(p.batch, p.length, is_packed ? p.channels / kWidth : p.channels, kTile), kConvThreads, stream,
           p);
  });
}

template <typename T>
void short_conv_update(const ShortConvUpdateParams<T>& p, cudaStream_t stream) {
  constexpr const char* kName = "short_conv_update";
  require_operands(kName, p);
  require_pointer(kName, "state", p.state);
  if (p.mask != nullptr) require_stride(kName, "mask_stride", p.mask_stride, 1);
  with_taps(p.taps, [&]<int kTaps>() {
    launch(kName,
           is_run<kTaps, T>(p.weight, p.state) ? short_conv_update_kernel<T, kTaps, kIsRun<kTaps>>
                                               : short_conv_update_kernel<T, kTaps, false>,
           ceil_div(p.batch * p.channels, kConvThreads), kConvThreads, stream, p);
  });
}

template void short_conv<float>(const ShortConvParams<float>&, cudaStream_t);
template void short_conv_update<float>(const ShortConvUpdateParams<float>&, cudaStream_t);

}  // namespace assay::fast
