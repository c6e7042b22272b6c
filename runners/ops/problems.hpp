// Problems: what each op of runners/ops/ops.def is given. A problem chooses the range of every input so that each part
// of the op moves its outputs, and says why beside it.
#pragma once

#include "cases/spec/op_case.hpp"
#include "cases/spec/subject.hpp"
#include "runners/ops/draw.hpp"

namespace assay::problems {

#define ASSAY_OP(stem) void stem(Draw& draw);
#include "runners/ops/ops.def"
#undef ASSAY_OP

}  // namespace assay::problems

namespace assay {

// The call of one point of a case, without a form. Deterministic.
OpCall draw_call(const OpCase& op_case, const OpPoint& point);

}  // namespace assay
