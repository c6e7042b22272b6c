// Beam search on a subject's logits, as the original's without an end token: every row of the leg is searched with
// `width` beams of its own, rows [r * width, (r + 1) * width) of the session.
//
//     cache     prefill, then for every step Session::reorder and a call of one token, the last token included: the
//               states are then those of the sequences found
//     no cache  whole sequences again at every step
//
// Sums are of log-softmax in double on the host; candidates are (beam, token), ties go to the lower index.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "golden/golden.hpp"
#include "runners/leg_run.hpp"

namespace assay {

// The `width` best of the candidates [sums.size(), V] and the best dropped one.
struct BeamChoice {
  golden::BeamStep step;
  std::vector<double> sums;  // of the kept beams
};
BeamChoice choose_beams(const std::vector<double>& sums, const std::vector<std::vector<double>>& log_probs,
                        int64_t width);

// Log-softmax of one row and column of logits [B, L, V].
std::vector<double> log_softmax(const HostTensor& logits, int64_t row, int64_t column);

// Sum of the log-probabilities of the row's last `count` tokens in a whole run's logits [B, L, V].
double sum_of_last(const HostTensor& logits, const RowPlan& row, int64_t batch_row, int64_t count);

struct BeamRun {
  std::vector<std::vector<golden::BeamStep>> steps;  // of each row of the leg; empty if after_call ended the leg
  LegTrace trace;  // rows: every beam with its whole sequence; states at the end; no calls
};

// after_call sees the prefill only: what follows depends on the choices. Errors are the subject's.
BeamRun run_beam_leg(Model& model, const LegPlan& plan, const LegOptions& options, const AfterCall& after_call);

// Every token v of the vocabulary after the one row's prompt. Row 0 of the session gets the prompt and the others
// another one, then all are reordered from row 0 and row v is fed v.
struct ExhaustiveRun {
  std::vector<double> first;  // [V] log-probabilities after the prompt
  LegTrace trace;             // calls: the step alone; rows: prompt and v; states at the end
};
ExhaustiveRun run_exhaustive_leg(Model& model, const LegPlan& plan, int64_t vocabulary, const LegOptions& options,
                                 const AfterCall& after_call);

// The rows of a trace as a leg of their own that feeds them whole, in one call. `leg` is filled and must outlive it.
LegPlan plan_whole(const LegTrace& found, const std::string& suffix, CacheKind cache, Leg& leg);

}  // namespace assay
