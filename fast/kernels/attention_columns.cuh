// What both forms of attention read alike: the columns there are, and which of them a query sees.
#pragma once

#include "fast/kernels/attention.hpp"
#include "fast/kernels/launch.cuh"

namespace assay::fast {

// The score of a column that a query does not see: finite, so that a query that sees none weighs all alike.
inline constexpr float kUnseen = -3.402823466e38f;
// The score of a column that does not exist.
inline constexpr float kAbsent = -__builtin_inff();

template <typename T>
__device__ inline int64_t past_of(const AttentionParams<T>& p) {
  // A P beyond the cache (of a kernel captured in a graph, say) must not lead outside it.
  return p.past_on_device == nullptr ? p.past : max(int64_t{0}, min(*p.past_on_device, p.capacity - p.length));
}

}  // namespace assay::fast
