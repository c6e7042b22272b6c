// attention: grouped-query causal attention of L new columns over a cache that already holds them.
//
//     s[c] = scale * q[l, h] . k[h / (nq / nkv), c]          c <= P + l and mask[c] != 0; the lowest float otherwise
//     y[l, h] = sum_c softmax(s)[c] v[h / (nq / nkv), c]      over the P + L columns
//
// A query that sees no column (padding itself) averages all P + L of them, as the lowest float makes it.
//
// in   q         [B, L, nq, hd]      row (b, l) at (b * L + l) * q_stride, head h at h * q_head_stride from there
//      k         [B, nkv, C, hd]     the cache, dense, columns from P + L on never read
//      v         [B, nkv, C, hdv]    likewise
//      mask      uint8 [B, P + L]    row b at b * mask_stride; null: every column counts
//      past_on_device  int64 [1]     P, read by the kernel in place of `past`; null: `past` holds
//      workspace attention_decode_workspace_bytes(p) bytes, 16-byte aligned; attention_decode only
// out  y         [B, L, nq, hdv]     dense
//
// attention_prefill: a block takes a tile of 128 (query, head of a group) rows through the keys, 128 at a time (64
// where heads are at most 64 wide), with a running maximum and sum, from about the first key that the mask leaves.
// attention_decode: the keys are split over blocks and the parts combined in a fixed order; any L, meant for a few. The
// split follows from B, L, nq, nkv, hd, hdv and P + L, not from C: a cache of another capacity gives the same bits.
//
// requires  nkv divides nq; 1 <= hd, hdv <= 512; P + L <= C <= 2^30; mask_stride >= P + L
// cost      bytes: ((L nq + T nkv) (hd + hdv)) B sizeof(T), T = P + L; flops: 2 B nq (hd + hdv) (L P + L (L + 1) / 2)
// numerics  float32, sums in a fixed order, exp within 1 ulp (prefill: 2^y within 2 ulp, y = s log2(e)); the softmax's
//           sum divides at the end. The keys of a tile (prefill: 64 or 128; decode: 4 or 8) are summed by themselves
//           and then added: at 8192 keys a quarter of the error of one sum over all of them, or less
// source    models.md B8; Milakov & Gimelshein 2018 (running softmax), Dao et al. 2022 (tiles of it)
// twin      reference/ops/attention.hpp
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "fast/kernels/kernel_id.hpp"

namespace assay::fast {

inline constexpr int64_t kWidestHead = 512;

template <typename T>
struct AttentionParams {
  const T* q = nullptr;
  int64_t q_stride = 0;
  int64_t q_head_stride = 0;
  const T* k = nullptr;
  const T* v = nullptr;
  const uint8_t* mask = nullptr;
  int64_t mask_stride = 0;
  T* y = nullptr;
  void* workspace = nullptr;
  int64_t batch = 0;
  int64_t length = 0;    // L
  int64_t heads = 0;     // nq
  int64_t kv_heads = 0;  // nkv
  int64_t width = 0;     // hd
  int64_t value_width = 0;
  int64_t capacity = 0;  // C
  int64_t past = 0;      // P
  const int64_t* past_on_device = nullptr;
  float scale = 1;
};

template <typename T>
void attention_prefill(const AttentionParams<T>& p, cudaStream_t stream);

template <typename T>
constexpr std::string_view attention_prefill_id(const AttentionParams<T>&) {
  return kernel_id<"attention_prefill", T>;
}

template <typename T>
size_t attention_decode_workspace_bytes(const AttentionParams<T>& p);
template <typename T>
void attention_decode(const AttentionParams<T>& p, cudaStream_t stream);

template <typename T>
constexpr std::string_view attention_decode_id(const AttentionParams<T>&) {
  return kernel_id<"attention_decode", T>;
}

// Whether so few rows share a key head that attention_decode is the quicker one.
template <typename T>
constexpr bool prefers_decode(const AttentionParams<T>& p) {
  return p.length <= 4;
}

}  // namespace assay::fast
