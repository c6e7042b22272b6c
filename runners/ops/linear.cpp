#include "runners/ops/problems.hpp"

namespace assay::problems {

void linear(Draw& draw) {
  draw.all("x", of_sum(1, 1));
  draw.all("weight", of_sum(1, draw.size("in")));
  draw.each("bias", [](int64_t i) { return two_sided(0.2, 0.6, i % 2 == 0); });
}

}  // namespace assay::problems
