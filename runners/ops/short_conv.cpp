#include "runners/ops/problems.hpp"

namespace assay::problems {

void short_conv(Draw& draw) {
  const int64_t channels = draw.size("C");
  // Gates and input of unlike sign and scale: two parts that are exchanged show.
  draw.each("bcx", [=](int64_t i) {
    constexpr Range kParts[] = {{0.3, 1.5}, {-2.4, -0.4}, {-1.7, 1.7}};
    return kParts[i / channels % 3];
  });
  draw.all("weight", of_sum(0.9, draw.size("K")));
  draw.each("bias", [](int64_t i) { return two_sided(0.2, 0.6, i % 2 == 0); });
  draw.all("initial_state", of_sum(1, 1));  // as large as the products it stands for
  draw.mask("mask");
}

}  // namespace assay::problems
