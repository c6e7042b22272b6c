// Judge: compares what a leg's calls gave with the goldens of its rows, in order of computation, and keeps the first
// finding.
//
// Per call: every sequence probe that a golden holds (a missing one is a finding, extra ones are ignored), row by row,
// at real columns and as far as the row's tokens are the golden's; then, with a cache, the states of each row for which
// the golden has a cut at the row's own length. States that grow are judged then and at the end of the leg, each column
// by the sequence probe that it repeats, where the golden holds that probe.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cases/spec/model_spec.hpp"
#include "golden/compare.hpp"
#include "runners/beam_search.hpp"
#include "runners/leg_judge.hpp"

namespace assay {

class Judge final : public LegJudge {
 public:
  Judge(const std::vector<ProbeSpec>& probes, const golden::Rule& rule, bool keeps_evidence);

  // As AfterCall: false once there is a finding, or once no free-running row follows its golden any more.
  bool after_call(const LegPlan& plan, const CallRecord& record, const std::vector<RowPlan>& rows,
                  const Session& session) override;

  // After the leg: the tokens that free-running rows chose, and rows with a change that moved nothing.
  void after_leg(const LegPlan& plan, const LegTrace& trace) override;

  // A beam search by the golden's; then its sums and states by a whole run of the sequences that it found.
  void beams(const LegPlan& plan, const BeamRun& run);
  void beams_again(const BeamRun& run, const LegTrace& whole);

  // An exhaustive search: what the golden's beams would choose from it; then every logit of the step, and the states if
  // `whole` has any, by a whole run of all its sequences.
  void exhaustive(const LegPlan& plan, const ExhaustiveRun& run);
  void exhaustive_again(const ExhaustiveRun& run, const LegTrace& whole);

  // Two legs, on every element of every probe where rows of the same input were fed the same tokens; then their final
  // states where they hold equally many columns.
  void agree(const LegTrace& a, const LegTrace& b) override;

 private:
  const golden::Bounds& bounds(const golden::Record& record, int64_t steps = 0);     // steps: of a state, its cut
  bool add(golden::Tally tally, const std::string& leg, int64_t step, int64_t row);  // true: the first finding is in it
  void missing(const std::string& probe, const std::string& leg, int64_t step, int64_t row);
  void compare_probes(const LegPlan& plan, const CallRecord& record, const std::vector<RowPlan>& rows);
  void compare_states(const LegPlan& plan, const CallRecord& record, const std::vector<RowPlan>& rows,
                      const Session& session);
  void compare_growing(const LegPlan& plan, const CallRecord& record, const std::vector<RowPlan>& rows,
                       const std::vector<NamedTensor>& states);
  void judge_steps(const std::string& leg, const RowPlan& row, size_t b, const golden::BeamRecord& record,
                   const std::vector<golden::BeamStep>& got);
  void agree_states(const LegTrace& a, size_t a_row, const LegTrace& b, size_t b_row, const std::string& leg);
  void agree_growing(const LegTrace& a, size_t a_row, const LegTrace& b, size_t b_row, const std::string& leg);
  void watch_change(const LegPlan& plan, const CallRecord& record, const std::vector<RowPlan>& rows);
  void judge_row_tokens(const LegPlan& plan, const LegTrace& trace, size_t row);
  void agree_rows(const LegTrace& a, size_t a_row, const LegTrace& b, size_t b_row, const std::string& leg);
  void collect(const NamedTensor* before, const NamedTensor& failing, const NamedTensor* after,
               const golden::Record& record, const CallRecord* call);

  golden::Rule rule_;
  bool keeps_evidence_;
  std::map<std::string, int64_t> layers_;  // of each probe
  std::vector<ProbeSpec> growing_;         // states that follow a sequence probe
  std::map<const golden::Record*, golden::Bounds> bounds_;
  std::map<std::pair<const LegPlan*, size_t>, bool> moved_;
};

}  // namespace assay
