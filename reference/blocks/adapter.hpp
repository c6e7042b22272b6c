// adapter_of: the low-rank addition of a shared block at one call site, B (A x) (zamba2, models.md M15).
//
// name  of the pair below place.prefix, with its ordinal and a dot: "linear_q_adapter_list.2." holds 0.weight
//       [rank, in] and 1.weight [out, rank]
#pragma once

#include <ATen/ATen.h>

#include <string>

#include "reference/pass.hpp"
#include "reference/place.hpp"

namespace assay::reference {

at::Tensor adapter_of(const at::Tensor& x, const Place& place, const std::string& name, const Pass& pass);

}  // namespace assay::reference
