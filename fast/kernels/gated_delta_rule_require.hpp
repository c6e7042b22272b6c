// What gated_delta_rule_chunked and gated_delta_rule_update require alike: InputError naming the field.
#pragma once

#include <string>

#include "fast/kernels/gated_delta_rule.hpp"
#include "fast/kernels/require.hpp"

namespace assay::fast {

template <typename T>
void require_delta_rule_sizes(const char* name, const GatedDeltaRuleOperands<T>& p) {
  require_range(name, "batch", p.batch, 1, kAnySize);
  require_range(name, "value_heads", p.value_heads, 1, kAnySize);
  require_range(name, "key_dim", p.key_dim, 1, kDeltaRuleKeyDim);
  require_range(name, "value_dim", p.value_dim, 1, kAnySize);
  require_divides(name, "key_heads", p.key_heads, "value_heads", p.value_heads);
}

template <typename T>
void require_delta_rule_operands(const char* name, const GatedDeltaRuleOperands<T>& p) {
  const auto require_rows = [name](const std::string& field, const T* rows, int64_t stride, int64_t width) {
    require_pointer(name, field.c_str(), rows);
    require_stride(name, (field + "_stride").c_str(), stride, width);
  };
  require_rows("q", p.q, p.q_stride, p.key_heads * p.key_dim);
  require_rows("k", p.k, p.k_stride, p.key_heads * p.key_dim);
  require_rows("v", p.v, p.v_stride, p.value_heads * p.value_dim);
  require_rows("g", p.g, p.g_stride, p.value_heads);
  require_rows("beta", p.beta, p.beta_stride, p.value_heads);
  require_pointer(name, "o", p.o);
  if ((p.a == nullptr) != (p.dt_bias == nullptr)) throw InputError(name, "a and dt_bias must be given together");
  if (!(p.epsilon >= 0)) throw InputError(name, "epsilon = " + std::to_string(p.epsilon) + " is below 0");
}

}  // namespace assay::fast
