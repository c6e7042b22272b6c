#include "reference/blocks/norm.hpp"

#include "reference/ops/rms_norm.hpp"

namespace assay::reference {

at::Tensor norm(const at::Tensor& x, const Place& place, const std::string& name, const std::string& probe_name,
                double epsilon, const Pass& pass) {
  return pass.keep(place.probe + probe_name, reference::rms_norm(x, place.weight(name + ".weight"), epsilon));
}

at::Tensor zero_centred_norm(const at::Tensor& x, const Place& place, const std::string& name,
                             const std::string& probe_name, double epsilon, const Pass& pass) {
  return pass.keep(place.probe + probe_name, reference::rms_norm(x, place.weight(name + ".weight") + 1, epsilon));
}

}  // namespace assay::reference
