#include "runners/ops/problems.hpp"

namespace assay::problems {

void gated_rms_norm(Draw& draw) {
  const int64_t width = draw.size("I");
  const int64_t group = width / static_cast<int64_t>(draw.attribute("groups", 1));
  // Groups of unlike scale: a mean over the whole row instead of a group shows.
  draw.each("x", [=](int64_t i) { return symmetric(1.0 + static_cast<double>(i % width / group % 3)); });
  draw.all("z", symmetric(3));  // both arms of silu; gating after the norm instead of before it shows
  draw.all("weight", {0.7, 1.3});
}

}  // namespace assay::problems
