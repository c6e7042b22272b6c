// Measure: one row of the bench, gated and timed, and how it is shown. Times of a kernel that fails its gate are not
// taken; a time in which no machine moves the counted bytes or flops fails as well, since the count is wrong.
#pragma once

#include <string>
#include <vector>

#include "cases/spec/subject.hpp"
#include "runners/bench/gate.hpp"
#include "runners/bench/shapes.hpp"

namespace assay::bench {

struct Measured {
  const Row* row = nullptr;
  GateResult gate;
  OpTiming timing;
  double median_ms = 0, p10_ms = 0, p90_ms = 0;
  double roof_ms = 0;  // the longer of bytes over the copy rate and flops over the float32 rate

  double roof_fraction() const { return roof_ms / median_ms; }
};

Measured measure(const Row& row, const Table& table, Subject& subject, Subject& reference, int repetitions);

// The value below which a share of the values lies, interpolated between neighbours; values need not be sorted.
double quantile(std::vector<double> values, double share);

std::vector<std::string> header_lines(const Capabilities& capabilities, const Table& table, int repetitions);
std::vector<std::string> lines(const Measured& measured);
nlohmann::json to_json(const Measured& measured, const Capabilities& capabilities);  // schema bench.schema.json

}  // namespace assay::bench
