// What ssd_chunked and ssd_update require alike: InputError naming the field.
#pragma once

#include <string>

#include "fast/kernels/require.hpp"

namespace assay::fast {

template <typename Params>
void require_ssd_sizes(const char* name, const Params& p) {
  require_range(name, "batch", p.batch, 1, kAnySize);
  require_range(name, "heads", p.heads, 1, kAnySize);
  require_range(name, "width", p.width, 1, kAnySize);
  require_range(name, "states", p.states, 1, kAnySize);
  require_divides(name, "groups", p.groups, "heads", p.heads);
}

template <typename Params>
void require_ssd_operands(const char* name, const Params& p) {
  require_pointer(name, "x", p.x);
  require_pointer(name, "dt", p.dt);
  require_pointer(name, "a", p.a);
  require_pointer(name, "b", p.b);
  require_pointer(name, "c", p.c);
  require_pointer(name, "skip", p.skip);
  require_pointer(name, "y", p.y);
  require_stride(name, "x_stride", p.x_stride, p.heads * p.width);
  require_stride(name, "dt_stride", p.dt_stride, p.heads);
  require_stride(name, "b_stride", p.b_stride, p.groups * p.states);
  require_stride(name, "c_stride", p.c_stride, p.groups * p.states);
  if (!(p.dt_min <= p.dt_max)) {
    throw InputError(name, "dt_min = " + std::to_string(p.dt_min) + " is above dt_max = " + std::to_string(p.dt_max));
  }
}

}  // namespace assay::fast
