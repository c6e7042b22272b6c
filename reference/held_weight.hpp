// HeldWeight: one weight as the model computes with it, read from the source, checked and rounded or quantised.
#pragma once

#include <ATen/ATen.h>

#include <optional>

#include "cases/spec/model_spec.hpp"
#include "cases/spec/nf4.hpp"
#include "cases/spec/subject.hpp"
#include "cases/spec/weight_source.hpp"

namespace assay::reference {

struct HeldWeight {
  at::Tensor value;              // float32; dequantised where the weight is quantised
  std::optional<Nf4Weight> nf4;  // where it is
};

// Quantised if options.quantized names it: with the source's own codes where the source has it quantised, else from its
// float32 values. Otherwise rounded to options.weights and widened again, but for a weight that the original keeps in
// float32. InputError naming tensor and file: of another shape than the table's, neither float32 nor float16 nor
// bfloat16, not finite when so held; stored quantised where the options do not say so, or otherwise than they say.
HeldWeight held_weight(const WeightSpec& spec, const WeightSource& source, const LoadOptions& options);

}  // namespace assay::reference
