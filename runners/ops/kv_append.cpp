#include "runners/ops/problems.hpp"

namespace assay::problems {

void kv_append(Draw& draw) {
  // Apart from each other: what was written and what had to stay cannot be mistaken.
  draw.all("k", {1, 2});
  draw.all("v", {3, 4});
  draw.all("k_cache", {-2, -1});
  draw.all("v_cache", {-4, -3});
}

}  // namespace assay::problems
