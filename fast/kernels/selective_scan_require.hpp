// What selective_scan and selective_scan_update require alike.
#pragma once

#include "fast/kernels/require.hpp"

namespace assay::fast {

inline constexpr int64_t kMaxScanStates = 256;

template <typename Params>
void require_scan_operands(const char* name, const Params& p) {
  require_pointer(name, "x", p.x);
  require_pointer(name, "dt", p.dt);
  require_pointer(name, "a", p.a);
  require_pointer(name, "b", p.b);
  require_pointer(name, "c", p.c);
  require_pointer(name, "skip", p.skip);
  require_pointer(name, "y", p.y);
  require_range(name, "batch", p.batch, 1, kAnySize);
  require_range(name, "channels", p.channels, 1, kAnySize);
  require_range(name, "states", p.states, 1, kMaxScanStates);
  require_stride(name, "x_stride", p.x_stride, p.channels);
  require_stride(name, "dt_stride", p.dt_stride, p.channels);
  require_divides(name, "groups", p.groups, "channels", p.channels);
  require_stride(name, "b_group_stride", p.b_group_stride, p.groups > 1 ? p.states : 0);
  require_stride(name, "c_group_stride", p.c_group_stride, p.groups > 1 ? p.states : 0);
  require_stride(name, "b_stride", p.b_stride, (p.groups - 1) * p.b_group_stride + p.states);
  require_stride(name, "c_stride", p.c_stride, (p.groups - 1) * p.c_group_stride + p.states);
  if (p.z != nullptr) require_stride(name, "z_stride", p.z_stride, p.channels);
}

}  // namespace assay::fast
