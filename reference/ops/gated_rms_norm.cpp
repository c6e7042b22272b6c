#include "reference/ops/gated_rms_norm.hpp"

#include "reference/ops/activations.hpp"
#include "reference/ops/gate.hpp"

namespace assay::reference {

namespace {

at::Tensor normed_by_group(const at::Tensor& x, int64_t groups, double epsilon) {
  const at::Tensor u = x.unflatten(-1, {groups, x.size(-1) / groups});
  const at::Tensor mean_square = (u * u).mean(-1, /*keepdim=*/true);
  return (u / at::sqrt(mean_square + epsilon)).flatten(-2);
}

}  // namespace

at::Tensor gated_rms_norm(const at::Tensor& x, const at::Tensor& z, const at::Tensor& weight, int64_t groups,
                          double epsilon) {
  return weight * normed_by_group(reference::gate(x, z), groups, epsilon);
}

at::Tensor rms_norm_gated(const at::Tensor& x, const at::Tensor& z, const at::Tensor& weight, int64_t groups,
                          double epsilon) {
  return weight * normed_by_group(x, groups, epsilon) * reference::silu(z);
}

}  // namespace assay::reference
