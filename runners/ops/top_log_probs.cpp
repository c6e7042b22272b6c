#include "runners/ops/problems.hpp"

namespace assay::problems {

void top_log_probs(Draw& draw) {
  const int64_t width = draw.size("V");
  // One row is a spread of unlike logits with one far above; the next has but five values, so that all of its largest
  // are ties, which go to the lower place; the third is negative throughout.
  draw.each("x", [=](int64_t i) {
    const int64_t row = i / width, at = i % width;
    if (row % 3 == 0) return at == (row * 37 + width - 1) % width ? Range{8, 9} : symmetric(4);
    if (row % 3 == 2) return Range{-9, -1};
    const double value = static_cast<double>(at * 7 % 5) - 2;
    return Range{value, value};
  });
}

}  // namespace assay::problems
