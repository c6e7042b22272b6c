// The prepare functions of prepared_op.cpp's table for routing and routed experts.
#pragma once

#include "fast/ops/preparation.hpp"

namespace assay::fast {

void prepare_router(Preparation& prepare);
void prepare_experts(Preparation& prepare);  // forms grouped (default), gemv

}  // namespace assay::fast
