// Does a golden prove anything? A subject that matches zeros, or numbers that never change, has shown nothing: HOLLOW.
#pragma once

#include <string>

#include "golden/golden.hpp"

namespace assay::golden {

// Why matching this golden would prove nothing, naming the probe; empty if it proves something. Looks at the sequence
// probes of the whole run only: a convolution's state after one token is mostly zeros and right, and so are sparse
// probes (Record::is_sparse) unless they are zero throughout.
//
//   a probe with a value that is not finite        a probe that is zero throughout
//   a probe of which more than half is exactly 0   a probe that is the same at every position although tokens differ
std::string vacuity(const Golden& golden);

}  // namespace assay::golden
