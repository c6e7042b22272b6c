// norm: an RMS norm of the residual stream or inside a mixer, kept as a probe.
#pragma once

#include <string>

#include "reference/pass.hpp"
#include "reference/place.hpp"

namespace assay::reference {

// rms_norm(x) with the weight place.prefix + name + ".weight", kept as place.probe + probe_name.
at::Tensor norm(const at::Tensor& x, const Place& place, const std::string& name, const std::string& probe_name,
                double epsilon, const Pass& pass);
// The same with 1 + weight (models.md B1, N-zc).
at::Tensor zero_centred_norm(const at::Tensor& x, const Place& place, const std::string& name,
                             const std::string& probe_name, double epsilon, const Pass& pass);

}  // namespace assay::reference
