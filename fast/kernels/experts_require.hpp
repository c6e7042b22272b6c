// Preconditions that both forms of experts share.
#pragma once

#include <cstdint>

#include "fast/kernels/experts.hpp"
#include "fast/kernels/require.hpp"

namespace assay::fast {

inline constexpr int64_t kMostExperts = 1024;

template <typename T>
void require_experts_sizes(const char* kernel, const ExpertsParams<T>& p) {
  require_range(kernel, "chosen", p.chosen, 1, INT32_MAX);
  require_range(kernel, "tokens", p.tokens, 1, INT32_MAX / p.chosen);
  require_range(kernel, "count", p.count, 1, kMostExperts);
  require_range(kernel, "width", p.width, 1, INT32_MAX);
  require_range(kernel, "hidden_width", p.hidden_width, 1, INT32_MAX);
}

template <typename T>
void require_experts_operands(const char* kernel, const ExpertsParams<T>& p) {
  require_pointer(kernel, "x", p.x);
  require_pointer(kernel, "experts", p.experts);
  require_pointer(kernel, "weights", p.weights);
  require_pointer(kernel, "first", p.first);
  require_pointer(kernel, "down", p.down);
  require_pointer(kernel, "y", p.y);
  require_pointer(kernel, "workspace", p.workspace);
  require_stride(kernel, "x_stride", p.x_stride, p.width);
}

}  // namespace assay::fast
