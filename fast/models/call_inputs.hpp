// What a call hands over, brought to the device for one pass: tokens, positions and masks.
#pragma once

#include "cases/spec/subject.hpp"
#include "fast/blocks/pass.hpp"

namespace assay::fast {

// Fills rows, columns, past, tokens, positions and the masks of pass from a call that has been checked; memory from
// pass.scratch. The masks stay null where nothing is padded.
void place_inputs(Pass& pass, const Call& call, int64_t rows, int64_t past);

}  // namespace assay::fast
