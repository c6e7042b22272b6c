#include "runners/ops/problems.hpp"

namespace assay::problems {

void causal_conv1d(Draw& draw) {
  draw.all("x", of_sum(1, 1));
  draw.all("weight", of_sum(0.9, draw.size("K")));
  draw.each("bias", [](int64_t i) { return two_sided(0.2, 0.6, i % 2 == 0); });  // silu(bias) is far from zero
  draw.all("initial_state", of_sum(1, 1));                                       // as large as the inputs it stands for
  draw.mask("mask");
}

}  // namespace assay::problems
