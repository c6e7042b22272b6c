// The prepare functions of prepared_op.cpp's table for what is done row by row.
#pragma once

#include "fast/ops/preparation.hpp"

namespace assay::fast {

void prepare_feed_forward(Preparation& prepare);
void prepare_scaled_add(Preparation& prepare);
void prepare_shared_gate(Preparation& prepare);
void prepare_argmax(Preparation& prepare);
void prepare_gather_rows(Preparation& prepare);
void prepare_gather_columns(Preparation& prepare);
void prepare_top_log_probs(Preparation& prepare);

}  // namespace assay::fast
