#include "runners/ops/problems.hpp"

namespace assay::problems {

void head_rms_norm(Draw& draw) {
  const int64_t width = draw.size("D");
  // Neighbouring heads and slices of unlike scale: a mean over more than the head, or another slice, shows.
  draw.each("x", [=](int64_t i) { return symmetric(1.0 + static_cast<double>(i / width % 5)); });
  draw.all("weight", draw.attribute("zero_centred", 0) != 0 ? symmetric(0.3) : Range{0.7, 1.3});
}

}  // namespace assay::problems
