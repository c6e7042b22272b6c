#include "reference/ops/gated_rms_norm.hpp"

#include "reference/ops/gate.hpp"

namespace assay::reference {

at::Tensor gated_rms_norm(const at::Tensor& x, const at::Tensor& z, const at::Tensor& weight, int64_t groups,
                          double epsilon) {
  const at::Tensor u = reference::gate(x, z).unflatten(-1, {groups, x.size(-1) / groups});
  const at::Tensor mean_square = (u * u).mean(-1, /*keepdim=*/true);
  return weight * (u / at::sqrt(mean_square + epsilon)).flatten(-2);
}

}  // namespace assay::reference
