// kv_append: the new columns of keys and values into the cache.
//
//     k_cache[b, h, P + l] = k[b, l, h];  v_cache[b, h, P + l] = v[b, l, h]
//
// in   k        [B, L, nkv, hd]    row (b, l) at (b * L + l) * k_stride, its heads dense
//      v        [B, L, nkv, hdv]   v_stride likewise
//      past_on_device  int64 [1]   P, read by the kernel in place of `past`; null: `past` holds
// out  k_cache  [B, nkv, C, hd]    dense; every other column stays
//      v_cache  [B, nkv, C, hdv]
//
// requires  P + L <= C; a column that would lie beyond C is not written
// cost      2 B L nkv (hd + hdv) sizeof(T) bytes
// numerics  a copy
// source    models.md 3.2
// twin      at::cat in reference/blocks/attention.cpp
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <string_view>

#include "fast/kernels/kernel_id.hpp"

namespace assay::fast {

template <typename T>
struct KvAppendParams {
  const T* k = nullptr;
  int64_t k_stride = 0;
  const T* v = nullptr;
  int64_t v_stride = 0;
  T* k_cache = nullptr;
  T* v_cache = nullptr;
  int64_t batch = 0;
  int64_t length = 0;    // L
  int64_t kv_heads = 0;  // nkv
  int64_t width = 0;     // hd
  int64_t value_width = 0;
  int64_t capacity = 0;  // C
  int64_t past = 0;      // P
  const int64_t* past_on_device = nullptr;
};

template <typename T>
void kv_append(const KvAppendParams<T>& p, cudaStream_t stream);

template <typename T>
constexpr std::string_view kv_append_id(const KvAppendParams<T>&) {
  return kernel_id<"kv_append_columns", T>;
}

}  // namespace assay::fast
