#include "runners/ops/problems.hpp"

namespace assay::problems {

void argmax(Draw& draw) {
  const int64_t width = draw.size("V");
  // One row has one largest element, the first at its end; the next has it three times, the last of them at the end;
  // the third is negative throughout.
  draw.each("x", [=](int64_t i) {
    const int64_t row = i / width, at = i % width;
    if (row % 3 == 0) return at == (row * 37 + width - 1) % width ? Range{2, 3} : symmetric(1);
    if (row % 3 == 1) return at == width / 3 || at == width / 2 || at == width - 1 ? Range{2, 2} : symmetric(1);
    return Range{-2, -1};
  });
}

}  // namespace assay::problems
