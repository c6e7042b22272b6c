#include "runners/ops/problems.hpp"

namespace assay::problems {

void silu_gate(Draw& draw) {
  draw.all("x", of_sum(1, 1));
  draw.all("z", symmetric(4));  // both arms of silu
}

}  // namespace assay::problems
