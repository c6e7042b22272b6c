// gather: columns of a projection in the order that the ops behind it want, index int32 [width] on the device, into a
// new buffer [T, width] (kernel: gather_columns.hpp).
#pragma once

#include "fast/blocks/pass.hpp"

namespace assay::fast {

Matrix gather(Pass& pass, const Matrix& x, const int32_t* index, int64_t width);

}  // namespace assay::fast
