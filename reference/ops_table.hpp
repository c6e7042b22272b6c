// run_reference_op: one op by itself, by the names of cases/ops/README.md. float32 inputs are computed in float32,
// float64 inputs in float64. InputError naming op and input; UnsupportedError for an unknown op or form, naming the
// known ones.
#pragma once

#include "cases/spec/subject.hpp"

namespace assay::reference {

OpResult run_reference_op(const OpCall& call);

}  // namespace assay::reference
