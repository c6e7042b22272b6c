// PreparedOp: an OpCall on the device, ready to be launched once (run_op) or many times (time_op).
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "cases/spec/subject.hpp"
#include "fast/device/context.hpp"
#include "fast/device/tensor.hpp"

namespace assay::fast {

struct PreparedOp {
  std::vector<std::pair<std::string, Tensor<float>>> outputs;
  // Queues the op on the context's stream. An update form changes the output state in place, so each launch goes one
  // call further.
  std::function<void()> launch;
  double bytes = 0;  // each input read once, each output written once
  double flops = 0;  // 0 where bytes are the limit
};

// Inputs, outputs and, at each launch, workspace come from arena; context and arena outlive the result.
// UnsupportedError: no such op or form. InputError: as OpInputs and the kernels' own preconditions.
PreparedOp prepare_op(Context& context, Arena& arena, const OpCall& call);

}  // namespace assay::fast
