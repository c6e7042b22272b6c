// LegJudge: judges the legs of one case as they run, and keeps the first finding. Judge (runners/judge.hpp) is for
// float32; LowPrecisionJudge (runners/judge_low.hpp) for a subject that computes in the case's own dtype.
#pragma once

#include <string>
#include <vector>

#include "golden/compare.hpp"
#include "runners/leg_run.hpp"

namespace assay {

// The tensors around a first finding, for --dump.
struct Evidence {
  std::vector<NamedTensor> tensors;
  std::string text;  // what they are
};

class LegJudge {
 public:
  virtual ~LegJudge() = default;

  // As AfterCall: false once nothing that follows in this leg can be judged.
  virtual bool after_call(const LegPlan& plan, const CallRecord& record, const std::vector<RowPlan>& rows,
                          const Session& session) = 0;
  virtual void after_leg(const LegPlan& plan, const LegTrace& trace) = 0;
  // Two legs that the case wants equal, both with their traces kept.
  virtual void agree(const LegTrace& a, const LegTrace& b) = 0;

  // What was found outside the comparison with the golden: weights read twice, a bit that differs between two legs.
  void take(const golden::Tally& found, const std::string& leg) {
    if (found.first && !tally_.first) leg_ = leg;
    tally_.merge(found);
  }

  const golden::Tally& tally() const { return tally_; }
  const std::string& leg() const { return leg_; }  // of the first finding
  const std::string& hollow() const { return hollow_; }
  const std::vector<std::string>& notes() const { return notes_; }
  const Evidence& evidence() const { return evidence_; }

 protected:
  golden::Tally tally_;
  std::string leg_, hollow_;
  std::vector<std::string> notes_;
  Evidence evidence_;
};

}  // namespace assay
