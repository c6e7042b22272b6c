// What gated_delta_rule_chunked and gated_delta_rule_update require alike: InputError naming the field.
#pragma once

#include "fast/kernels/gated_delta_rule.hpp"
#include "fast/kernels/require.hpp"

namespace assay::fast {

template <typename Params>
void require_delta_rule_sizes(const char* name, const Params& p) {
  require_range(name, "batch", p.batch, 1, kAnySize);
  require_range(name, "value_heads", p.value_heads, 1, kAnySize);
  require_range(name, "key_dim", p.key_dim, 1, kDeltaRuleKeyDim);
  require_range(name, "value_dim", p.value_dim, 1, kAnySize);
  require_divides(name, "key_heads", p.key_heads, "value_heads", p.value_heads);
}

template <typename Params>
void require_delta_rule_operands(const char* name, const Params& p) {
  require_pointer(name, "q", p.q);
  require_pointer(name, "k", p.k);
  require_pointer(name, "v", p.v);
  require_pointer(name, "g", p.g);
  require_pointer(name, "beta", p.beta);
  require_pointer(name, "o", p.o);
  require_stride(name, "q_stride", p.q_stride, p.key_heads * p.key_dim);
  require_stride(name, "k_stride", p.k_stride, p.key_heads * p.key_dim);
  require_stride(name, "v_stride", p.v_stride, p.value_heads * p.value_dim);
  require_stride(name, "g_stride", p.g_stride, p.value_heads);
  require_stride(name, "beta_stride", p.beta_stride, p.value_heads);
  if ((p.a == nullptr) != (p.dt_bias == nullptr)) throw InputError(name, "a and dt_bias must be given together");
  if (!(p.epsilon >= 0)) throw InputError(name, "epsilon = " + std::to_string(p.epsilon) + " is below 0");
}

}  // namespace assay::fast
