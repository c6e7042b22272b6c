// Entries of reference/ops_table.cpp for attention, what stands round it, and what is done row by row: one op call's
// inputs to its outputs, as cases/ops/README.md says.
#pragma once

#include <ATen/ATen.h>

#include <string>
#include <utility>
#include <vector>

#include "reference/op_inputs.hpp"

namespace assay::reference {

using NamedOutputs = std::vector<std::pair<std::string, at::Tensor>>;

NamedOutputs run_rotary(OpInputs& in, const std::string& form);
NamedOutputs run_attention(OpInputs& in, const std::string& form);
NamedOutputs run_kv_append(OpInputs& in, const std::string& form);
NamedOutputs run_gate(OpInputs& in, const std::string& form);
NamedOutputs run_feed_forward(OpInputs& in, const std::string& form);
NamedOutputs run_scaled_add(OpInputs& in, const std::string& form);
NamedOutputs run_shared_gate(OpInputs& in, const std::string& form);
NamedOutputs run_argmax(OpInputs& in, const std::string& form);
NamedOutputs run_gather_rows(OpInputs& in, const std::string& form);
NamedOutputs run_gather_columns(OpInputs& in, const std::string& form);

}  // namespace assay::reference
