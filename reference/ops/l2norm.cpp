#include "reference/ops/l2norm.hpp"

namespace assay::reference {

at::Tensor l2norm(const at::Tensor& x, double epsilon) {
  return x / at::sqrt((x * x).sum(-1, /*keepdim=*/true) + epsilon);
}

}  // namespace assay::reference
