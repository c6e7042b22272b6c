#include "reference/blocks/adapter.hpp"

#include "reference/ops/linear.hpp"

namespace assay::reference {

at::Tensor adapter_of(const at::Tensor& x, const Place& place, const std::string& name) {
  return reference::linear(reference::linear(x, place.weight(name + "0.weight")), place.weight(name + "1.weight"));
}

}  // namespace assay::reference
