// LowPrecisionJudge: judges the logits of a subject that computes in float16 or bfloat16 by the gates of
// golden/low_precision.hpp, row by row, after each leg. A wrong shape, NaN/Inf and missing logits end the leg at once.
//
// The goldens hold the original's own error (P) for the logits alone, so nothing gates other probes or states: a state
// that is wrong shows in the logits of the steps after it. Where a golden holds the other probes, a finding says in
// words which was the first to be further from R than a right subject's roundings carry it.
//
// Two legs that the case wants equal are each within k times P, with independent roundings at worst: their difference,
// over every logit, is gated against P by the same gates with leg_factor. A case's bound override is of float32 bounds
// and does not count here.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cases/spec/host_tensor.hpp"
#include "golden/low_precision.hpp"
#include "runners/leg_judge.hpp"

namespace assay {

class LowPrecisionJudge final : public LegJudge {
 public:
  LowPrecisionJudge(DType compute, const golden::LowPrecisionRule& rule, bool keeps_evidence)
      : compute_(compute), rule_(rule), keeps_evidence_(keeps_evidence) {}

  bool after_call(const LegPlan& plan, const CallRecord& record, const std::vector<RowPlan>& rows,
                  const Session& session) override;
  void after_leg(const LegPlan& plan, const LegTrace& trace) override;
  void agree(const LegTrace& a, const LegTrace& b) override;

 private:
  // The first probe of a row that is further from R than roundings carry it.
  struct Far {
    std::string probe;
    int64_t step = -1, position = -1;
    double rounding_units = 0;  // error over the dtype's rounding unit times the probe's scale
  };

  bool add(golden::Tally tally, const std::string& leg, int64_t step, int64_t row);  // true: the first finding is in it
  void look_for_far(const LegPlan& plan, const CallRecord& record, const RowPlan& row, size_t b);
  void gate(const std::string& leg, const RowPlan& row, size_t b, const std::vector<golden::LogitError>& errors,
            double factor, const Far* far);
  void agree_rows(const LegTrace& a, size_t a_row, const LegTrace& b, size_t b_row);

  DType compute_;
  golden::LowPrecisionRule rule_;
  bool keeps_evidence_;
  std::map<std::pair<const LegPlan*, size_t>, std::vector<golden::LogitError>> errors_;
  std::map<std::pair<const LegPlan*, size_t>, Far> far_;
};

// NoVerdict where these legs cannot be judged so: SKIP for beams, free-running rows and changed tokens, NO_GOLDEN where
// a row's golden has no error of the original in this dtype.
void check_low_precision(const std::vector<LegPlan>& plans, DType compute);

}  // namespace assay
