// Preparation: what a prepare function of one op works with: the call, its inputs on the device as they are asked for,
// and the PreparedOp that it fills.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "fast/blocks/sequence_ops.hpp"
#include "fast/device/check.hpp"
#include "fast/ops/op_inputs.hpp"
#include "fast/ops/prepared_op.hpp"

namespace assay::fast {

struct Preparation {
  const OpCall& call;
  Context& context;
  Arena& arena;
  OpInputs& in;
  SequenceForm form;
  PreparedOp op;

  float* output(const std::string& name, Shape shape) {
    const Tensor<float> tensor = allocate<float>(arena, std::move(shape), name);
    op.outputs.emplace_back(name, tensor);
    op.bytes += 4.0 * static_cast<double>(tensor.count());
    return tensor.data;
  }

  // An update form steps in place, starting from the initial state: the copy belongs to the preparation, so that
  // launches are timed without it.
  const float* start_of(const float* initial, float* final_state) {
    if (form == SequenceForm::kSequence) return initial;
    const Tensor<float>& tensor = op.outputs.back().second;
    if (initial == nullptr)
      zero(tensor, context.stream());
    else
      check(cudaMemcpyAsync(final_state, initial, static_cast<size_t>(tensor.count()) * sizeof(float),
                            cudaMemcpyDeviceToDevice, context.stream()),
            "copy of an initial state");
    return final_state;
  }

  template <class Params>
  void launch(const Params& p, void (*run)(const Params&, cudaStream_t), std::string_view (*id)(const Params&)) {
    op.launch = [&context = context, p, run, id] {
      run(p, context.stream());
      context.record(id(p));
    };
  }

  template <class Params, class Run>
  void launch_sequence(const Params& p, Run run) {
    op.launch = [&context = context, &arena = arena, form = form, p, run] {
      Scratch scratch(arena);
      run(context, arena, p, form);
      scratch.close();
    };
  }
};

}  // namespace assay::fast
