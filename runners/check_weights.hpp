// check_weights: whether a loaded model holds the weights that a golden of kind f16, bf16, nf4 or nf4dq was recorded
// with, tensor by tensor. The logits of a model with one wrongly held weight may well be within their bounds.
//
//   every weight   Model::weight, by its digest: one that is rounded, or left in float32, against the golden shows
//   nf4, nf4dq     the golden's weights and no others are quantised; codes, absmax, nested_absmax and offset equal bit
//   for
//                  bit, block by block
//
// The finding's probe is "weights.<name>", what is "dtype" or "digest", or the part that differs ("codes", ...) with
// index the first block that does, bad and of in blocks. detail says it in words.
#pragma once

#include <optional>
#include <string>

#include "cases/spec/case.hpp"
#include "cases/spec/subject.hpp"
#include "golden/compare.hpp"
#include "golden/golden.hpp"

namespace assay {

// How a subject must load the model for the case: what it computes in, and the golden's list of weights to quantise. A
// subject that does not compute in the case's dtype computes in float32 on weights rounded to it.
LoadOptions load_options(const Case& test_case, const Capabilities& capabilities, const golden::Golden& golden);

// In the order of the model's table; none for kind f32. InputError where the golden has no digest of a weight.
std::optional<golden::Finding> check_weights(const Model& model, const ModelConfig& config,
                                             const golden::Golden& golden);

}  // namespace assay
