// router: which experts a token goes to, and with which weights (models.md B10).
//
// in   logits  [..., E]
//      bias    [E], added to the scores for the choice only; undefined = none
// out          [..., E], the weight of each expert, 0 where it is not chosen
//
// Ties go to the lower index.
// source  models.md B10: softmax then top-k, top-k then softmax, sigmoid with selection bias and expert groups
#pragma once

#include <ATen/ATen.h>

#include "cases/spec/blocks/experts.hpp"

namespace assay::reference {

at::Tensor router(const at::Tensor& logits, const at::Tensor& bias, const ExpertsShape& shape);

}  // namespace assay::reference
