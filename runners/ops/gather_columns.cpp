#include "runners/ops/problems.hpp"

namespace assay::problems {

void gather_columns(Draw& draw) {
  draw.all("x", of_sum(1, 1));
  draw.ids("index", draw.size("X"));
}

}  // namespace assay::problems
