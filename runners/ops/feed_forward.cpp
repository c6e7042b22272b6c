#include "runners/ops/problems.hpp"

namespace assay::problems {

void feed_forward(Draw& draw) {
  // Both tails of each activation; one element surely positive, so that not all of a squared ReLU is zero.
  draw.each("gate", [](int64_t i) { return i == 0 ? Range{1, 4} : symmetric(4); });
  draw.all("up", of_sum(1, 1));
}

}  // namespace assay::problems
