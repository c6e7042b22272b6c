// The comparison of two results of one op call, on every element of every output. R is the reference op in float32, its
// floor the difference to the same op in float64:
//
//     bound of a tensor = factor * max(largest |f32 - f64|, `ulps` ulp of the largest |f32|)
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cases/spec/op_case.hpp"
#include "cases/spec/subject.hpp"
#include "golden/compare.hpp"

namespace assay {

struct ExpectedTensor {
  HostTensor value;
  double bound = 0;
};

struct ExpectedOutputs {
  std::vector<std::pair<std::string, ExpectedTensor>> tensors;  // in the op's order
  std::string hollow;  // why matching them would prove nothing; empty if it proves something
};

// Runs the call on the reference twice. InputError where the outputs are not those of the op's contract, or not finite.
ExpectedOutputs expected_outputs(Subject& reference, const OpSpec& spec, const OpPoint& point, const OpCall& call,
                                 const golden::Rule& rule);

// Findings: output missing or of another shape or dtype; not finite; out of bounds. Finding::row and index together are
// the coordinates.
golden::Tally compare_outputs(const ExpectedOutputs& expected, const OpResult& got);

// Of whole outputs that are compared in a sample: findings of shape and dtype, and of what is not finite (in checked
// arenas of `fast`: what was not written).
golden::Tally check_finite(const OpSpec& spec, const OpPoint& point, const OpResult& got);

// True if one of the ids is a kernel of the op: "ssd_chunked_f32@sm_90" is one of ssd.
bool names_kernel(const std::vector<std::string>& kernels, const std::string& op);

// The same call on float64 inputs; ids and masks stay as they are.
OpCall in_float64(const OpCall& call);

}  // namespace assay
