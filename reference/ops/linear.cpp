#include "reference/ops/linear.hpp"

namespace assay::reference {

at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  const at::Tensor product = at::matmul(x, weight.t());
  return bias.defined() ? product + bias : product;
}

}  // namespace assay::reference
