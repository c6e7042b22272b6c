// Adapter: the low-rank addition of a shared block at one call site, B (A x) (zamba2, models.md M15).
//
// twin  reference/blocks/adapter.hpp
#pragma once

#include <string>

#include "fast/blocks/pass.hpp"
#include "fast/blocks/weights.hpp"

namespace assay::fast {

struct Adapter {
  Weight narrow;  // [rank, in]; null: no adapter
  Weight wide;    // [out, rank]
};

// name: of the pair, with its ordinal and a dot: "...linear_q_adapter_list.2.".
Adapter adapter(const Weights& weights, const std::string& name);

// y += wide (narrow x); nothing without an adapter.
void add_adapter(Pass& pass, const Matrix& x, const Adapter& adapter, const Matrix& y);

}  // namespace assay::fast
