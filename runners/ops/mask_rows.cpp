#include "runners/ops/problems.hpp"

namespace assay::problems {

void mask_rows(Draw& draw) {
  draw.all("x", two_sided(0.5, 2, true));  // away from zero: a row that was cleared or kept by mistake shows
  draw.mask("mask");
}

}  // namespace assay::problems
