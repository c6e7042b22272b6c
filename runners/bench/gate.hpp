// Gate: is the kernel right at the shape that is timed? Where the reference would take too long for the whole, it
// computes a part: the last rows (far offsets) and, since the ops are causal, the first columns; the part is cut out of
// the whole run's inputs and outputs. What a part cannot show (states after the last column) is checked by a call of
// the part's own size.
#pragma once

#include <string>

#include "cases/spec/subject.hpp"
#include "golden/compare.hpp"
#include "runners/bench/shapes.hpp"

namespace assay::bench {

struct GateResult {
  bool passed = false;
  double used = 0;   // of the bound
  std::string text;  // what was compared; on failure the first element that is wrong
};

GateResult gate(const Row& row, const OpCall& call, Subject& subject, Subject& reference,
                const golden::Rule& rule = {});

// The part of a tensor with these leading sizes: of B and T the last entries, of L the first.
HostTensor part_of(const HostTensor& whole, const OpTensor& tensor, const OpPoint& part);

}  // namespace assay::bench
