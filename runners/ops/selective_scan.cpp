#include "runners/ops/problems.hpp"

namespace assay::problems {

void selective_scan(Draw& draw) {
  const int64_t states = draw.size("N");
  draw.all("x", of_sum(1, 1));
  // Before the bias: it moves softplus within about 0.01 to 1.5, and so does every token. Without a bias dt is the step
  // itself and must be above zero.
  draw.all("dt", draw.has("dt_bias") ? symmetric(0.7) : Range{0.02, 1});
  draw.all("dt_bias", {-3.9, 0.54});  // softplus of it is 0.02 to 1
  // Slow decay (half-lives of tens of tokens and more) keeps a wrong state visible, fast decay a wrong exponent; both
  // in every channel.
  draw.each("A", [states](int64_t i) {
    return (i / states + i % states) % 2 == 0 ? Range{-0.08, -0.007} : Range{-4.5, -0.6};
  });
  draw.all("B", of_sum(1, 1));
  draw.all("C", of_sum(1, states));
  draw.each("D", [](int64_t i) { return two_sided(0.4, 1.6, i % 3 != 0); });
  draw.all("z", symmetric(3));              // both arms of silu
  draw.all("initial_state", of_sum(1, 1));  // as large as the state that inputs build up
}

}  // namespace assay::problems
