// Gates for the logits of a subject that computes in float16 or bfloat16.
//
// R is the golden (the original in float32 on the rounded weights), P the original's own run in the dtype, F the
// subject. The error of a position is the largest |difference| to R of its sampled logits; P's are recorded. For each
// row of a leg, over the positions that are not marked, in this order:
//
//     median, p90    of F's errors <= k * the same quantile of P's + floor; p90 of least_for_p90 positions or more
//     largest        of F's errors <= largest_k * the largest of P's + floor
//     norm           | |F| - |R| | of every position's whole row of V logits <= (largest_k * the largest of P's +
//     floor)
//                    * sqrt(V): what is wrong outside the sample
//
// and the first three once more over the row's cached steps alone ("median of steps" ...), where there are
// least_positions of them. A quantile is the value at rank ceil(q n) of n in ascending order. floor is the largest
// float32 bound of the positions looked at (golden/compare.hpp): what passes float32 bounds passes here. NaN and Inf
// are findings wherever they are, marked or not, and come before the gates.
//
// A mark (a router's choice nearer to a tie than the dtype's noise) holds for every later position of its row: after
// another expert all that follows rightly differs. Marked positions are shown in a note, not gated. More than
// most_marked of a row marked, or fewer than least_positions left: HOLLOW.
//
// What the gates cannot see. A quantile says nothing of the positions above its rank: a fault in fewer than half of the
// positions is hidden from the median, one in at most n / 10 from p90, and then only the largest is left, which takes
// anything below largest_k times P's worst position: a fault of one position must be larger than that. The errors of F
// and P are independent draws; the ratio of their quantiles, in right subjects, has a spread (of its logarithm) of 0.23
// for the median, 0.33 for p90 and 0.41 for the largest at 12 positions, and of 0.18, 0.27 and 0.35 at 40. So k = 2
// lies about three spreads from 1 for the median of 8 positions and for p90 where at least two positions lie above it,
// which is from 20 on, and the largest needs 3. With fewer than 8 a right subject may fail. A fault smaller than the
// dtype's own noise is not seen at all: that is what the float32 subject is for.
//
// Calibration of k: golden/README.md, "Low precision".
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cases/spec/host_tensor.hpp"
#include "golden/compare.hpp"
#include "golden/golden.hpp"

namespace assay::golden {

struct LowPrecisionRule {
  // Calibrated on 90 runs of fifteen families: a right subject reaches 1.4 times P's median, 1.4 times its p90 and 1.6
  // times its largest, 74 % of an allowance at most; of fifteen planted faults the nearest to passing uses 142 %.
  double k = 2, largest_k = 3;
  // Two legs of one subject: each has the allowances above, and their roundings are independent at worst.
  double leg_factor = 1.41421356;
  int64_t least_positions = 8, least_for_p90 = 20;
  double most_marked = 0.5;
};

// One position of a row of F.
struct LogitError {
  double error = 0;                        // largest |got - expected| of the logits compared
  double norm_error = 0;                   // of the whole row, |got's norm - expected's|
  int64_t index = -1;                      // the logit with that error
  double expected = 0, got = 0;            // its values
  double norm_expected = 0, norm_got = 0;  // L2 norms of the whole row
  int64_t step = -1;                       // call of the leg that gave it
  bool is_cached_step = false;             // one token after others, from the cache
};

// Appends positions [position, position + count) of row `row`, from columns [column, column + count) of got [B, L, V]
// float32. `step` and `is_cached_step` are the caller's. A finding for a wrong shape or for NaN/Inf (then nothing is
// appended); InputError for positions that the record does not have.
struct LogitColumns {
  const HostTensor& tensor;
  int64_t row, column;
};
Tally measure_logits(const Record& logits, const LogitColumns& got, int64_t position, int64_t count,
                     std::vector<LogitError>& into);
// The same between two legs, over every logit.
Tally measure_leg_logits(const Record& logits, const LogitColumns& expected, const LogitColumns& got, int64_t position,
                         int64_t count, std::vector<LogitError>& into);

struct LowPrecisionJudgement {
  // first: probe "logits", what = the gate, at the first position whose error is beyond the gate's allowance, which is
  // `bound`; bad of the `of` positions looked at are. used_by: "logits (p90 of steps)".
  Tally tally;
  std::string hollow;              // why too little was left to gate; empty after a finding
  std::vector<std::string> notes;  // marked positions, steps too few to be gated alone
};

// row: the errors of positions 0, 1, ... of one row of one leg. original: P of the row's golden, one error a position
// of the record (InputError otherwise). factor multiplies each allowance.
LowPrecisionJudgement judge_low_precision(const Record& logits, const PrecisionError& original,
                                          std::span<const LogitError> row, const LowPrecisionRule& rule,
                                          double factor = 1);

// Where a mark of the golden begins to hold: its first marked position, or `positions`.
int64_t first_marked(const PrecisionError& original, int64_t positions);

}  // namespace assay::golden
