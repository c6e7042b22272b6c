// Entries of fast/ops/prepared_op.cpp for elementwise kernels.
#pragma once

#include "fast/ops/preparation.hpp"

namespace assay::fast {

void prepare_mask_rows(Preparation& prepare);
void prepare_residual_add(Preparation& prepare);
void prepare_silu_gate(Preparation& prepare);

}  // namespace assay::fast
