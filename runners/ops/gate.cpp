#include "runners/ops/problems.hpp"

namespace assay::problems {

void gate(Draw& draw) {
  draw.all("x", of_sum(1, 1));
  draw.all("gate", symmetric(4));  // from nearly shut to nearly open
}

}  // namespace assay::problems
