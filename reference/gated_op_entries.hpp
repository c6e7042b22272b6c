// Entries of reference/ops_table.cpp for the gated delta rule, the gated short convolution and the norms around them:
// one op call's inputs to its outputs, as cases/ops/README.md says.
#pragma once

#include <ATen/ATen.h>

#include <string>
#include <utility>
#include <vector>

#include "reference/op_inputs.hpp"

namespace assay::reference {

using NamedOutputs = std::vector<std::pair<std::string, at::Tensor>>;

NamedOutputs run_gated_delta_rule(OpInputs& in, const std::string& form);
NamedOutputs run_short_conv(OpInputs& in, const std::string& form);
NamedOutputs run_rms_norm_gated(OpInputs& in, const std::string& form);
NamedOutputs run_head_rms_norm(OpInputs& in, const std::string& form);
NamedOutputs run_l2norm(OpInputs& in, const std::string& form);

}  // namespace assay::reference
