// Gate: is the kernel right at the shape that is timed? Where the reference would take too long for the whole, it
// computes a part: the last rows or outputs (far offsets) and, since the ops are causal, the first columns, or the last
// queries of an attention; of tables that ids point into, the entries that the part uses. The part is cut out of the
// whole run's inputs and outputs. What a part cannot show (states after the last column) is checked by a call of the
// part's own size.
#pragma once

#include <string>

#include "cases/spec/subject.hpp"
#include "golden/compare.hpp"
#include "runners/bench/shapes.hpp"
#include "runners/ops/sample.hpp"

namespace assay::bench {

struct GateResult {
  bool passed = false;
  double used = 0;   // of the bound
  std::string text;  // what was compared; on failure the first element that is wrong
};

// call: the row's, with its form.
GateResult gate(const Row& row, const OpCall& call, Subject& subject, Subject& reference,
                const golden::Rule& rule = {});

// The entries of the part that the reference computes; none if the row is gated as a whole.
Entries gate_entries(const Row& row, const OpCall& call);

}  // namespace assay::bench
