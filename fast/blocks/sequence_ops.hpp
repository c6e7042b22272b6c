// The ops that run along time, in either of their forms. kSequence is one call of the sequence (or chunked) kernel.
// kUpdate takes the columns one by one through the update kernel, on p.final_state, or on scratch where that is null,
// starting from p.initial_state or zeros; the outputs are those of kSequence.
//
// Parameters, preconditions and numerics are the kernels' own. Scratch holds the kernels' workspace; the caller
// releases it.
#pragma once

#include "fast/device/arena.hpp"
#include "fast/device/context.hpp"
#include "fast/kernels/causal_conv1d.hpp"
#include "fast/kernels/selective_scan.hpp"
#include "fast/kernels/ssd.hpp"

namespace assay::fast {

enum class SequenceForm { kSequence, kUpdate };

// What a session was told about an op with two forms: nothing, its sequence form (chunked, prefill, grouped), or the
// other one.
enum class FormChoice { kByCall, kSequence, kUpdate };

void run_causal_conv1d(Context& context, Arena& scratch, CausalConv1dParams<float> p, SequenceForm form);
void run_selective_scan(Context& context, Arena& scratch, SelectiveScanParams<float> p, SequenceForm form);
void run_ssd(Context& context, Arena& scratch, SsdParams<float> p, SequenceForm form);

}  // namespace assay::fast
