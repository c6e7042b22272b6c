// Comparison of what a subject computed with what was recorded, and of two legs with each other. One place, one rule.
//
// float32 bound of a position = factor * max(its floor, the tensor's typical floor, `ulps` ulp of the tensor's scale);
// typical is the upper quartile of a sequence's positions, the largest of them where a position has 16 elements or
// fewer, and the median of a state's heads, which may be of unlike scale; the same for norms with the norm floors (and
// no less than the elements' own floor at that position, and ulp of the position's own norm). A difference equal to the
// bound is within it.
//
// Order of checks: shape and dtype; NaN/Inf; bounds, position by position, each position's elements before its norm.
// A golden keeps a sample of each row; the norm of the whole row is judged as well, so that a fault outside the sample
// is seen, and NaN/Inf are looked for in the whole row. A subject's wrong shape, dtype or value is a Finding; a row or
// position that the record cannot answer for is the caller's InputError.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cases/spec/host_tensor.hpp"
#include "golden/golden.hpp"

namespace assay::golden {

// The calibrated constants; `assay selftest` prints the margin on each side.
struct Rule {
  double factor = 8;
  double ulps = 4;
  int64_t few = 16;  // up to so many elements a position's floor, their largest, is luck
};

// The rule for a model whose longest sum has `width` terms: beyond 256 the ulps grow as the root of the width, which is
// how a float32 sum errs that adds one term after the other. The original's own sums are blocked, so that its floors do
// not hold this. Measured at real widths on a reference whose BLAS adds so: 1.43 times a bound (jamba, 8192 terms),
// 0.94 (granitemoehybrid, 4096), 0.8 (qwen3_5_moe, falcon_mamba); on blocked sums the same reference uses at most 0.25.
Rule at_width(Rule rule, int64_t width);

// The first element out of bounds, in the caller's order of computation.
struct Finding {
  std::string probe;
  int64_t layer = -1;
  int64_t row = 0;             // batch row
  int64_t position = -1;       // token position in the row's own sequence (padding not counted), -1 for states
  int64_t step = -1;           // index of the call within its leg
  std::vector<int64_t> index;  // coordinates inside the row of the tensor (for a state: the whole state); empty = norm
  // expected is NaN where it was not recorded: "not finite" outside the sample.
  double expected = 0, got = 0, bound = 0;
  // "value", "norm": sampled elements, or norms, out of bounds in this tensor, of those compared; "not finite":
  // elements of the whole rows that are.
  int64_t bad = 0, of = 0;
  std::string what;    // "value", "norm", "shape", "not finite", "moved", "token"
  std::string detail;  // in words what numbers cannot say: "expected [1, 7, 16] float32, got [1, 8, 16] float32"
};

struct Tally {
  int64_t probes = 0;              // tensors compared
  int64_t elements = 0;            // values compared one by one; norms are not counted
  double used = 0;                 // largest |difference| / bound, infinite where one side alone is not finite
  std::string used_by;             // probe where that was
  std::optional<Finding> first;    // first finding
  void merge(const Tally& later);  // keeps the earlier first finding, adds counts, takes the larger used
};

// Bound of each position of a record; `norms` gives that of the norms.
struct Bounds {
  std::vector<double> element, norm;  // [positions]
};
// The quartile, since floors of single positions are luck: of 200 positions of a right implementation on three other
// seeds of every config one reached 90 % of a bound with the median (mamba2, 200 steps). The floor of a position is the
// largest of its elements in four runs; with few elements it is luck too: a right routing over 4 experts at jamba's
// real width was 1.43 times a bound by the quartile, at a position whose logits had a floor six times that of its
// weights, and is 0.71 of the bound by the largest. steps: tokens that a state has taken in; 0 for a sequence. The
// floor of a state comes from the original's chunked sums; a recurrence adds a rounding a token, and those sum up as
// the root of their number, so beyond 16 tokens the ulps grow by sqrt(steps / 16). Measured: after 200 tokens a right
// recurrence differs from the chunked form by 45 ulp of a state's norm.
Bounds bounds_of(const Record& record, const Rule& rule, int64_t steps = 0);

// One row of a sequence probe. got: [B, L, ...] float32; columns [column, column + count) of batch row `row` hold the
// positions [position, position + count) of the record.
Tally compare_sequence(const Record& record, const Bounds& bounds, const HostTensor& got, int64_t row, int64_t column,
                       int64_t position, int64_t count);

// One row of a state. got: [B, ...] float32, its trailing element count = record.positions *
// element_count(record.shape).
Tally compare_state(const Record& record, const Bounds& bounds, const HostTensor& got, int64_t row);

// Two legs on every element: same shapes as above, the record only supplies the bounds.
Tally compare_legs(const Record& record, const Bounds& bounds, const HostTensor& expected, int64_t expected_row,
                   int64_t expected_column, const HostTensor& got, int64_t row, int64_t column, int64_t position,
                   int64_t count);
// A row of a state that grows by a column a token: [B, heads, T, width] with T = columns, of which the first pad are
// padding. record: of one column [heads, width] at each position, under the state's name; the first `count` positions
// are compared.
struct GrowingRow {
  const HostTensor& tensor;
  int64_t row, pad, columns;
};
Tally compare_growing(const Record& record, const Bounds& bounds, const GrowingRow& got, int64_t count);
Tally compare_leg_growing(const Record& record, const Bounds& bounds, const GrowingRow& expected, const GrowingRow& got,
                          int64_t count);

Tally compare_leg_states(const Record& record, const Bounds& bounds, const HostTensor& expected, int64_t expected_row,
                         const HostTensor& got, int64_t row);

}  // namespace assay::golden
