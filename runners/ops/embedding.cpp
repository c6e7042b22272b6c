#include "runners/ops/problems.hpp"

namespace assay::problems {

void embedding(Draw& draw) {
  draw.ids("ids", draw.size("V"));
  draw.all("weight", symmetric(1));  // all different, so another row or column shows
}

}  // namespace assay::problems
