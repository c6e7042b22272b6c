#include "runners/ops/problems.hpp"

namespace assay::problems {

void gated_delta_rule(Draw& draw) {
  const int64_t heads = draw.size("Hv");
  // Keys that overlap, as they do behind silu: what the state holds under a key is then far from zero, and so is every
  // correction inside a chunk. Not normed, their length stays below sqrt(1.8): with beta below 1 the state cannot grow.
  const double most = draw.attribute("l2norm", 1) != 0 ? 1 : std::sqrt(1.8 / static_cast<double>(draw.size("K")));
  draw.all("q", {-0.5 * most, most});
  draw.all("k", {-0.3 * most, most});
  draw.all("v", of_sum(1, 1));
  // Slow decay keeps a wrong carry between chunks visible, fast decay a wrong exponent inside a chunk; neighbouring
  // heads, which share a key head, differ.
  if (draw.has("A")) {
    draw.all("g", symmetric(0.7));
    draw.each("A", [](int64_t i) { return i % 2 == 0 ? Range{-0.08, -0.007} : Range{-4.5, -0.6}; });
    draw.all("dt_bias", {-3.9, 0.54});
  } else {
    draw.each("g", [=](int64_t i) { return i % heads % 2 == 0 ? Range{-0.06, -0.001} : Range{-2, -0.1}; });
  }
  draw.all("beta", draw.attribute("sigmoid", 0) != 0 ? symmetric(3) : Range{0.1, 1});
  draw.all("initial_state", of_sum(1, draw.size("K")));  // what it holds under a key is as large as v
}

}  // namespace assay::problems
