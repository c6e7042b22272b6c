#include "runners/ops/problems.hpp"

namespace assay::problems {

void residual_add(Draw& draw) {
  draw.all("x", of_sum(1, 1));
  draw.all("residual", of_sum(1, 1));
}

}  // namespace assay::problems
