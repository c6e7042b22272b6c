// Two legs compared bit for bit, on every probe of every call and on the states after the last one.
//
// Rows of the same input are compared where they were fed the same tokens: real columns, position by position; states
// where the whole rows are equal, those that grow without their padded columns. Every bit counts: 0.0 and -0.0 differ,
// since code that is the same on both sides does not change a sign. One NaN is like another, whatever its payload.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "cases/spec/model_spec.hpp"
#include "golden/compare.hpp"
#include "runners/leg_run.hpp"

namespace assay {

struct BitwiseResult {
  int64_t probes = 0, elements = 0;  // compared
  // what: "bits"; or "missing", "shape" (dtypes too). expected is a's value, got b's, bound 0.
  std::optional<golden::Finding> first;
};

// probes: the model's table. HarnessError where a leg kept no trace (LegOptions::keep_trace).
BitwiseResult compare_bits(const LegTrace& a, const LegTrace& b, const std::vector<ProbeSpec>& probes);

}  // namespace assay
