#include "runners/ops/problems.hpp"

namespace assay::problems {

void attention(Draw& draw) {
  const int64_t columns = draw.size("T"), kv_heads = draw.size("nkv"), width = draw.size("hdv");
  // Scores of variance 1 under the usual scale: no column decides alone and none disappears.
  draw.all("q", of_sum(1, 1));
  draw.all("k", of_sum(1, 1));
  // Heads of unlike scale, and away from zero in some of them: a query head that reads another key head, or a weight
  // that does not belong to the sum, shows.
  draw.each("v", [=](int64_t i) {
    const int64_t head = i / width / columns % kv_heads;
    return Range{-1.0 + 0.5 * static_cast<double>(head % 3), 1.0 + static_cast<double>(head % 3)};
  });
  draw.mask("mask");
}

}  // namespace assay::problems
