#include "reference/ops/dt.hpp"

#include "reference/ops/activations.hpp"

namespace assay::reference {

at::Tensor dt(const at::Tensor& raw, const at::Tensor& bias, double dt_min, double dt_max) {
  return at::clamp(reference::softplus(raw + bias), dt_min, dt_max);
}

}  // namespace assay::reference
