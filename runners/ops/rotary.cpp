#include "runners/ops/problems.hpp"

namespace assay::problems {

void rotary(Draw& draw) {
  const int64_t width = draw.size("hd");
  // Neighbouring heads of unlike scale: a lane of another head shows.
  draw.each("x", [=](int64_t i) { return symmetric(1.0 + 0.5 * static_cast<double>(i / width % 4)); });
  // Short calls at low positions, where the bound, which follows the rounding of the angle, is tight.
  draw.ids("positions", draw.size("L") <= 4 ? 16 : 4096);
}

}  // namespace assay::problems
