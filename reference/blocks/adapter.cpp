#include "reference/blocks/adapter.hpp"

#include "reference/ops/linear.hpp"

namespace assay::reference {

at::Tensor adapter_of(const at::Tensor& x, const Place& place, const std::string& name, const Pass& pass) {
  const at::Tensor narrow = pass.rounded(reference::linear(x, place.weight(name + "0.weight")));
  return pass.rounded(reference::linear(narrow, place.weight(name + "1.weight")));
}

}  // namespace assay::reference
