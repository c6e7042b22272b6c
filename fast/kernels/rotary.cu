#include <string>

#include "fast/kernels/launch.cuh"
#include "fast/kernels/require.hpp"
#include "fast/kernels/rotary.hpp"
#include "fast/kernels/storage.cuh"

namespace assay::fast {
namespace {

constexpr int kThreads = 128;
constexpr int kHeads = 4;  // heads that share a thread's cosine and sine

// An item is (token, block of heads, i): pair i below R / 2, and the lane R + i - R / 2 that passes from there on.
template <typename T>
__global__ void __launch_bounds__(kThreads) rotary_kernel(RotaryParams<T> p) {
  const int64_t half = p.rotary_width / 2;
  const int64_t lanes = p.width - half;
  const int64_t q_blocks = ceil_div(p.q.heads, kHeads), blocks = q_blocks + ceil_div(p.k.heads, kHeads);
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t item = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; item < p.tokens * blocks * lanes;
       item += step) {
    const int64_t token_block = item / lanes, i = item - token_block * lanes;
    const int64_t token = token_block / blocks, block = token_block - token * blocks;
    const bool is_query = block < q_blocks;
    const RotaryHeads<T> heads = is_query ? p.q : p.k;
    const int64_t first = (is_query ? block : block - q_blocks) * kHeads;
    const T* x = heads.x + token * heads.x_stride + i;
    T* y = heads.y + token * heads.y_stride + i;
    if (i >= half) {
      if (heads.x == heads.y) continue;
#pragma unroll
      for (int h = 0; h < kHeads; ++h) {
        if (first + h < heads.heads) {
          y[(first + h) * heads.y_head_stride + half] = x[(first + h) * heads.x_head_stride + half];
        }
      }
      continue;
    }
    const float angle = static_cast<float>(p.positions[token]) * p.frequencies[i];
    const float cosine = cosf(angle) * p.attention_factor, sine = sinf(angle) * p.attention_factor;
    float low[kHeads], high[kHeads];
#pragma unroll
    for (int h = 0; h < kHeads; ++h) {
      if (first + h < heads.heads) {
        low[h] = to_float(x[(first + h) * heads.x_head_stride]);
        high[h] = to_float(x[(first + h) * heads.x_head_stride + half]);
      }
    }
#pragma unroll
    for (int h = 0; h < kHeads; ++h) {
      if (first + h < heads.heads) {
        T* to = y + (first + h) * heads.y_head_stride;
        to[0] = from_float<T>(low[h] * cosine - high[h] * sine);
        to[half] = from_float<T>(high[h] * cosine + low[h] * sine);
      }
    }
  }
}

template <typename T>
void require_heads(const std::string& name, const RotaryHeads<T>& heads, int64_t width) {
  constexpr const char* kName = "rotary";
  require_pointer(kName, (name + ".x").c_str(), heads.x);
  require_pointer(kName, (name + ".y").c_str(), heads.y);
  require_range(kName, (name + ".heads").c_str(), heads.heads, 1, kAnySize);
  require_stride(kName, (name + ".x_head_stride").c_str(), heads.x_head_stride, width);
  require_stride(kName, (name + ".y_head_stride").c_str(), heads.y_head_stride, width);
  require_stride(kName, (name + ".x_stride").c_str(), heads.x_stride, (heads.heads - 1) * heads.x_head_stride + width);
  require_stride(kName, (name + ".y_stride").c_str(), heads.y_stride, (heads.heads - 1) * heads.y_head_stride + width);
}

}  // namespace

template <typename T>
void rotary(const RotaryParams<T>& p, cudaStream_t stream) {
  constexpr const char* kName = "rotary";
  require_heads("q", p.q, p.width);
  if (p.k.x != nullptr) {
    require_heads("k", p.k, p.width);
  } else {
    require_range(kName, "k.heads", p.k.heads, 0, 0);
  }
  require_pointer(kName, "positions", p.positions);
  require_pointer(kName, "frequencies", p.frequencies);
  require_range(kName, "tokens", p.tokens, 1, kAnySize);
  require_range(kName, "rotary_width", p.rotary_width, 2, p.width);
  require_divides(kName, "2", 2, "rotary_width", p.rotary_width);
  const int64_t blocks = ceil_div(p.q.heads, kHeads) + ceil_div(p.k.heads, kHeads);
  const int64_t items = p.tokens * blocks * (p.width - p.rotary_width / 2);
  launch(kName, rotary_kernel<T>, ceil_div(items, kThreads), kThreads, stream, p);
}

template void rotary<float>(const RotaryParams<float>&, cudaStream_t);

}  // namespace assay::fast
