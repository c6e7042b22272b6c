// Entries of reference/ops_table.cpp for routing and routed experts: one op call's inputs to its outputs, as
// cases/ops/README.md says.
#pragma once

#include <ATen/ATen.h>

#include <string>
#include <utility>
#include <vector>

#include "reference/op_inputs.hpp"

namespace assay::reference {

using NamedOutputs = std::vector<std::pair<std::string, at::Tensor>>;

NamedOutputs run_router(OpInputs& in, const std::string& form);
NamedOutputs run_experts(OpInputs& in, const std::string& form);

}  // namespace assay::reference
