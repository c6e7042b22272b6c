#include "runners/ops/problems.hpp"

namespace assay::problems {

void l2norm(Draw& draw) {
  const int64_t width = draw.size("D");
  // Neighbouring heads and slices of unlike scale: a sum over more than the head, or another slice, shows.
  draw.each("x", [=](int64_t i) { return symmetric(1.0 + static_cast<double>(i / width % 5)); });
}

}  // namespace assay::problems
