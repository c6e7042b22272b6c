// Preconditions that both forms of attention share.
#pragma once

#include "fast/kernels/attention.hpp"
#include "fast/kernels/require.hpp"

namespace assay::fast {

inline constexpr int64_t kMostColumns = int64_t{1} << 30;  // columns are counted in 32 bits

template <typename T>
void require_attention_sizes(const char* kernel, const AttentionParams<T>& p) {
  require_range(kernel, "batch", p.batch, 1, kAnySize);
  require_range(kernel, "length", p.length, 1, kAnySize);
  require_range(kernel, "kv_heads", p.kv_heads, 1, kAnySize);
  require_range(kernel, "heads", p.heads, 1, kAnySize);
  require_divides(kernel, "kv_heads", p.kv_heads, "heads", p.heads);
  require_range(kernel, "width", p.width, 1, kWidestHead);
  require_range(kernel, "value_width", p.value_width, 1, kWidestHead);
  require_range(kernel, "capacity", p.capacity, p.length, kMostColumns);
  if (p.past_on_device == nullptr) require_range(kernel, "past", p.past, 0, p.capacity - p.length);
}

template <typename T>
void require_attention_operands(const char* kernel, const AttentionParams<T>& p) {
  require_pointer(kernel, "q", p.q);
  require_pointer(kernel, "k", p.k);
  require_pointer(kernel, "v", p.v);
  require_pointer(kernel, "y", p.y);
  require_stride(kernel, "q_head_stride", p.q_head_stride, p.width);
  require_stride(kernel, "q_stride", p.q_stride, (p.heads - 1) * p.q_head_stride + p.width);
  // P on the device is not known here: at least the new columns.
  const int64_t columns = p.past_on_device == nullptr ? p.past + p.length : p.length;
  if (p.mask != nullptr) require_stride(kernel, "mask_stride", p.mask_stride, columns);
}

}  // namespace assay::fast
