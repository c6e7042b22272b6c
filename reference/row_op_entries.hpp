// Entries of the ops table: ops over rows whose kernels are parts of blocks or of a generation. Contracts:
// cases/ops/README.md.
#pragma once

#include <ATen/ATen.h>

#include <string>
#include <utility>
#include <vector>

#include "reference/op_inputs.hpp"

namespace assay::reference {

using NamedOutputs = std::vector<std::pair<std::string, at::Tensor>>;

NamedOutputs run_top_log_probs(OpInputs& in, const std::string& form);
NamedOutputs run_mask_rows(OpInputs& in, const std::string& form);
NamedOutputs run_residual_add(OpInputs& in, const std::string& form);
NamedOutputs run_silu_gate(OpInputs& in, const std::string& form);

}  // namespace assay::reference
