#include "runners/ops/problems.hpp"

namespace assay::problems {

void shared_gate(Draw& draw) {
  draw.all("x", of_sum(1, 1));
  // Neighbouring tokens on either side of half open: another token's gate shows.
  draw.each("gate", [](int64_t i) { return two_sided(0.5, 3, i % 2 == 0); });
  draw.all("residual", of_sum(1, 1));
}

}  // namespace assay::problems
