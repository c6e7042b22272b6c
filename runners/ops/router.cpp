#include "runners/ops/problems.hpp"

namespace assay::problems {

void router(Draw& draw) {
  const int64_t count = draw.size("E");
  // Every third token has but five values among its logits: ties, which go to the lower index.
  draw.each("logits", [=](int64_t i) {
    const int64_t token = i / count, expert = i % count;
    if (token % 3 != 2) return symmetric(3);
    const double value = static_cast<double>(expert * 7 % 5) - 2;
    return Range{value, value};
  });
  // Negative, as strong as the scores: it decides the choice, and a group that is masked by 0 would win.
  draw.all("bias", {-1.5, -0.5});
}

}  // namespace assay::problems
