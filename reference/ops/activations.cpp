#include "reference/ops/activations.hpp"

#include "cases/spec/error.hpp"

namespace assay::reference {

at::Tensor silu(const at::Tensor& x) { return x * at::sigmoid(x); }

at::Tensor softplus(const at::Tensor& x) { return at::where(x > 20, x, at::log1p(at::exp(x))); }

at::Tensor gelu(const at::Tensor& x) { return 0.5 * x * (1 + at::erf(x * 0.70710678118654752440)); }

at::Tensor relu2(const at::Tensor& x) {
  const at::Tensor positive = at::relu(x);
  return positive * positive;
}

at::Tensor activate(const at::Tensor& x, Activation activation) {
  switch (activation) {
    case Activation::kSilu:
      return reference::silu(x);
    case Activation::kGelu:
      return reference::gelu(x);
    case Activation::kRelu2:
      return reference::relu2(x);
  }
  throw InputError("activation", "is not known");
}

}  // namespace assay::reference
