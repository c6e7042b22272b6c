#include "runners/ops/problems.hpp"

namespace assay::problems {

void gather_rows(Draw& draw) {
  draw.all("x", of_sum(1, 1));
  draw.ids("source", draw.size("R"));
}

}  // namespace assay::problems
