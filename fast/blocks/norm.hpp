// Root mean square norms as the blocks use them (kernels: rms_norm.hpp, head_norm.hpp).
#pragma once

#include "fast/blocks/pass.hpp"
#include "fast/blocks/weights.hpp"

namespace assay::fast {

struct NormKind {
  double epsilon = 0;
  bool is_zero_centred = false;  // multiplies by 1 + weight
};

// y = rms_norm(x); both dense.
void norm(Pass& pass, const Matrix& x, const Weight& weight, const NormKind& kind, const Matrix& y);
// sum = x + residual;  y = rms_norm(sum). All dense; sum may be x or residual.
void add_and_norm(Pass& pass, const Matrix& x, const Matrix& residual, const Matrix& sum, const Weight& weight,
                  const NormKind& kind, const Matrix& y);
// Each row of x in place, whatever the distance between rows: a head, or a slice of a projection. weight: null for 1.
void norm_in_place(Pass& pass, const Matrix& x, const float* weight, const NormKind& kind);

}  // namespace assay::fast
