// run_gated_delta_rule, run_short_conv: further ops that run along time, in either of their forms, as sequence_ops.hpp
// says.
#pragma once

#include "fast/blocks/sequence_ops.hpp"
#include "fast/kernels/gated_delta_rule.hpp"
#include "fast/kernels/short_conv.hpp"

namespace assay::fast {

void run_gated_delta_rule(Context& context, Arena& scratch, GatedDeltaRuleParams<float> p, SequenceForm form);
void run_short_conv(Context& context, Arena& scratch, ShortConvParams<float> p, SequenceForm form);

}  // namespace assay::fast
