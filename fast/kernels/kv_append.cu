#include "fast/kernels/kv_append.hpp"
#include "fast/kernels/launch.cuh"
#include "fast/kernels/require.hpp"
#include "fast/kernels/storage.cuh"

namespace assay::fast {
namespace {

constexpr int kThreads = 256;

template <typename T, int kWidth>
__global__ void kv_append_kernel(KvAppendParams<T> p) {
  const int64_t past = p.past_on_device == nullptr ? p.past : *p.past_on_device;
  const int64_t key_packs = p.width / kWidth, packs = key_packs + p.value_width / kWidth;
  const int64_t count = p.batch * p.length * p.kv_heads * packs;
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < count; i += step) {
    const int64_t row_head = i / packs, pack = i - row_head * packs;
    const int64_t row = row_head / p.kv_heads, head = row_head - row * p.kv_heads;
    const int64_t batch = row / p.length, column = past + row - batch * p.length;
    if (column < 0 || column >= p.capacity) continue;
    const int64_t to = (batch * p.kv_heads + head) * p.capacity + column;
    float element[kWidth];
    if (pack < key_packs) {
      load_pack<kWidth>(p.k + row * p.k_stride + head * p.width + pack * kWidth, element);
      store_pack<kWidth>(p.k_cache + to * p.width + pack * kWidth, element);
    } else {
      const int64_t at = (pack - key_packs) * kWidth;
      load_pack<kWidth>(p.v + row * p.v_stride + head * p.value_width + at, element);
      store_pack<kWidth>(p.v_cache + to * p.value_width + at, element);
    }
  }
}

}  // namespace

template <typename T>
void kv_append(const KvAppendParams<T>& p, cudaStream_t stream) {
  constexpr const char* kName = "kv_append";
  require_pointer(kName, "k", p.k);
  require_pointer(kName, "v", p.v);
  require_pointer(kName, "k_cache", p.k_cache);
  require_pointer(kName, "v_cache", p.v_cache);
  require_range(kName, "batch", p.batch, 1, kAnySize);
  require_range(kName, "length", p.length, 1, kAnySize);
  require_range(kName, "kv_heads", p.kv_heads, 1, kAnySize);
  require_range(kName, "width", p.width, 1, kAnySize);
  require_range(kName, "value_width", p.value_width, 1, kAnySize);
  require_range(kName, "capacity", p.capacity, p.length, kAnySize);
  if (p.past_on_device == nullptr) require_range(kName, "past", p.past, 0, p.capacity - p.length);
  require_stride(kName, "k_stride", p.k_stride, p.kv_heads * p.width);
  require_stride(kName, "v_stride", p.v_stride, p.kv_heads * p.value_width);
  constexpr int kWidth = kPackWidth<T>;
  const bool is_packed =
      is_packable<kWidth, T>({p.k, p.v, p.k_cache, p.v_cache}, {p.width, p.value_width, p.k_stride, p.v_stride});
  const int64_t items = p.batch * p.length * p.kv_heads * (p.width + p.value_width) / (is_packed ? kWidth : 1);
  launch(kName, is_packed ? kv_append_kernel<T, kWidth> : kv_append_kernel<T, 1>, ceil_div(items, kThreads), kThreads,
         stream, p);
}

template void kv_append<float>(const KvAppendParams<float>&, cudaStream_t);

}  // namespace assay::fast
