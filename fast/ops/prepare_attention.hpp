// The prepare functions of prepared_op.cpp's table for attention and what stands round it.
#pragma once

#include "fast/ops/preparation.hpp"

namespace assay::fast {

void prepare_rotary(Preparation& prepare);
void prepare_attention(Preparation& prepare);  // forms prefill (default), decode
void prepare_kv_append(Preparation& prepare);
void prepare_gate(Preparation& prepare);

}  // namespace assay::fast
