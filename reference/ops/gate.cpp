#include "reference/ops/gate.hpp"

#include "reference/ops/activations.hpp"

namespace assay::reference {

at::Tensor gate(const at::Tensor& y, const at::Tensor& z) { return y * reference::silu(z); }

}  // namespace assay::reference
