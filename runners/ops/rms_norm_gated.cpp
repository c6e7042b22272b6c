#include "runners/ops/problems.hpp"

namespace assay::problems {

void rms_norm_gated(Draw& draw) {
  const int64_t width = draw.size("D"), groups = draw.size("G");
  // Groups of unlike scale: a mean over the whole row instead of a group shows.
  draw.each("x", [=](int64_t i) { return symmetric(1.0 + static_cast<double>(i / width % groups % 3)); });
  draw.all("z", symmetric(3));  // both arms of silu; gating before the norm instead of after it shows
  draw.all("weight", {0.7, 1.3});
  draw.all("shared_weight", {0.7, 1.3});
}

}  // namespace assay::problems
