// What walking a sequence column by column through an update kernel needs: the columns of inputs and outputs, and the
// state that is changed in place.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <initializer_list>
#include <string>

#include "fast/device/check.hpp"
#include "fast/device/context.hpp"
#include "fast/device/tensor.hpp"

namespace assay::fast {

// Column t of a [B, L, width] tensor as the update kernels want it: [B, width] dense. Where the tensor's own memory is
// not that already, the kernel writes to a column of scratch that is copied into place.
class ColumnOutput {
 public:
  ColumnOutput(Arena& scratch, float* tensor, int64_t batch, int64_t length, int64_t width, const std::string& label)
      : tensor_(tensor), batch_(batch), length_(length), width_(width) {
    if (tensor != nullptr && batch > 1 && length > 1) column_ = allocate<float>(scratch, {batch, width}, label).data;
  }
  float* at(int64_t t) const {
    if (tensor_ == nullptr) return nullptr;
    return column_ != nullptr ? column_ : tensor_ + t * width_;
  }
  void store(int64_t t, cudaStream_t stream) const {
    if (column_ == nullptr) return;
    const size_t bytes = static_cast<size_t>(width_) * sizeof(float);
    check(cudaMemcpy2DAsync(tensor_ + t * width_, bytes * static_cast<size_t>(length_), column_, bytes, bytes,
                            static_cast<size_t>(batch_), cudaMemcpyDeviceToDevice, stream),
          "copy of a column");
  }

 private:
  float* tensor_;
  float* column_ = nullptr;
  int64_t batch_, length_, width_;
};

// The state that update kernels change in place, holding initial, or zeros where that is null.
inline float* state_in_place(Context& context, Arena& scratch, const float* initial, float* final_state,
                             int64_t count) {
  float* state = final_state != nullptr ? final_state : allocate<float>(scratch, {count}, "update state").data;
  const size_t bytes = static_cast<size_t>(count) * sizeof(float);
  if (initial == nullptr)
    check(cudaMemsetAsync(state, 0, bytes, context.stream()), "zeroing of an initial state");
  else if (initial != state)
    check(cudaMemcpyAsync(state, initial, bytes, cudaMemcpyDeviceToDevice, context.stream()),
          "copy of an initial state");
  return state;
}

// An input of an update kernel's params that moves on from column to column, and where its first column lies; null: an
// input that the op does without.
template <class Step>
struct StepInput {
  const float* Step::*member;
  const float* first;
  int64_t stride;  // elements from a column to the next
};

// An output of an update kernel's params, and its columns.
template <class Step>
struct StepOutput {
  float* Step::*member;
  ColumnOutput columns;
};

// The columns of a sequence one after another through update(step, t). `step` comes with all that does not move: sizes,
// weights, limits, the state.
template <class Step, class Update>
void walk_columns(int64_t length, Step step, std::initializer_list<StepInput<Step>> inputs,
                  std::initializer_list<StepOutput<Step>> outputs, cudaStream_t stream, Update update) {
  for (int64_t t = 0; t < length; ++t) {
    for (const StepInput<Step>& input : inputs)
      step.*input.member = input.first == nullptr ? nullptr : input.first + t * input.stride;
    for (const StepOutput<Step>& output : outputs) step.*output.member = output.columns.at(t);
    update(step, t);
    for (const StepOutput<Step>& output : outputs) output.columns.store(t, stream);
  }
}

}  // namespace assay::fast
