// The prepare functions of prepared_op.cpp's table for the gated delta rule, the gated short convolution and the norms
// around them.
#pragma once

#include "fast/ops/preparation.hpp"

namespace assay::fast {

void prepare_gated_delta_rule(Preparation& prepare);
void prepare_short_conv(Preparation& prepare);
void prepare_rms_norm_gated(Preparation& prepare);
void prepare_head_rms_norm(Preparation& prepare);
void prepare_l2norm(Preparation& prepare);

}  // namespace assay::fast
