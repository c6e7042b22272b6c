#include "runners/ops/problems.hpp"

namespace assay::problems {

void experts(Draw& draw) {
  const int64_t width = draw.size("X"), hidden = draw.size("F"), rows = draw.size("R");
  draw.all("x", of_sum(1, 1));
  draw.ids("ids", draw.size("E"));
  draw.all("weights", {0.1, 1});
  // Neighbouring experts of unlike scale: a row that went to another expert shows.
  draw.each("first", [=](int64_t i) { return of_sum(1.0 + 0.4 * static_cast<double>(i / (rows * width) % 3), width); });
  draw.each("down",
            [=](int64_t i) { return of_sum(1.0 + 0.4 * static_cast<double>(i / (hidden * width) % 4), hidden); });
}

}  // namespace assay::problems
