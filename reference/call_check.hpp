// check_call: refuses a forward call that does not fit the session, before anything is computed.
#pragma once

#include <cstdint>

#include "cases/spec/subject.hpp"

namespace assay::reference {

// rows: B of the session; past: P, the columns seen so far. InputError naming row, column and value for token ids that
// are not int64 [B, L] in [0, vocabulary), and for a mask that is not uint8 [B, P + L] of left padding (in each row
// zeros, then ones).
void check_call(const Call& call, int64_t rows, int64_t past, int64_t vocabulary);

}  // namespace assay::reference
