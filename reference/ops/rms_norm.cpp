#include "reference/ops/rms_norm.hpp"

namespace assay::reference {

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double epsilon) {
  const at::Tensor mean_square = (x * x).mean(-1, /*keepdim=*/true);
  return weight * (x / at::sqrt(mean_square + epsilon));
}

}  // namespace assay::reference
