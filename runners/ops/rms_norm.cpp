#include "runners/ops/problems.hpp"

namespace assay::problems {

void rms_norm(Draw& draw) {
  const int64_t width = draw.size("H");
  // Rows of unlike scale: a mean over more than the row shows.
  draw.each("x", [width](int64_t i) { return symmetric(1.0 + static_cast<double>(i / width % 3)); });
  draw.all("weight", draw.attribute("zero_centred", 0) != 0 ? symmetric(0.3) : Range{0.7, 1.3});
  draw.all("residual", symmetric(1));
}

}  // namespace assay::problems
