#include "runners/judge_low.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "runners/goldens.hpp"

namespace assay {

namespace {

// In rounding units of the probe's scale. A right subject reaches 26, behind three norms of small vectors; 15 is usual.
constexpr double kFar = 32;

double rounding_unit(DType dtype) { return dtype == DType::kF16 ? 0x1p-11 : 0x1p-8; }

const golden::PrecisionError* error_of(const golden::Golden& golden, DType compute) {
  for (const golden::PrecisionError& error : golden.errors)
    if (error.compute == dtype_name(compute)) return &error;
  return nullptr;
}

// Positions a row shares with its golden: what follows the first other token answers another question.
int64_t shared_positions(const RowPlan& row) {
  const std::vector<int64_t>& recorded = row.golden->golden.tokens;
  return std::mismatch(row.tokens.begin(), row.tokens.end(), recorded.begin(), recorded.end()).first -
         row.tokens.begin();
}

// The real columns that a call adds to a row, as far as the row is the golden's.
Span judged_span(const CallRecord& call, const RowPlan& row) {
  const int64_t from = std::max(call.first, call.judge_from);
  Span span = real_span(from, call.first + call.columns - from, row.pad);
  span.column += from - call.first;
  span.count = std::max<int64_t>(0, std::min(span.count, shared_positions(row) - span.position));
  return span;
}

bool is_cached_step(const LegPlan& plan, const CallRecord& call) {
  return plan.leg->cache != CacheKind::kNone && call.columns == 1 && call.first > 0;
}

golden::Tally missing_logits() {
  golden::Tally tally;
  tally.first.emplace();
  tally.first->probe = "logits";
  tally.first->what = "missing";
  return tally;
}

}  // namespace

void check_low_precision(const std::vector<LegPlan>& plans, DType compute) {
  for (const LegPlan& plan : plans) {
    const bool has_change =
        std::any_of(plan.rows.begin(), plan.rows.end(), [](const RowPlan& row) { return row.change.has_value(); });
    if (plan.leg->beams || plan.leg->free_running || has_change)
      throw NoVerdict(Status::kSkip,
                      fmt::format("leg '{}' chooses or changes tokens, which is judged in float32 only", plan.name),
                      SkipReason::kNoCapability);
    for (const RowPlan& row : plan.rows)
      if (!error_of(row.golden->golden, compute))
        throw NoVerdict(Status::kNoGolden, fmt::format("golden {} has no error of the original in {}",
                                                       row.golden->golden.id(), dtype_name(compute)));
  }
}

bool LowPrecisionJudge::add(golden::Tally tally, const std::string& leg, int64_t step, int64_t row) {
  const bool is_first = tally.first && !tally_.first;
  if (tally.first) {
    tally.first->row = row;
    if (tally.first->step < 0) tally.first->step = step;
    if (is_first) leg_ = leg;
  }
  tally_.merge(tally);
  return is_first;
}

bool LowPrecisionJudge::after_call(const LegPlan& plan, const CallRecord& record, const std::vector<RowPlan>& rows,
                                   const Session& /*session*/) {
  const HostTensor* logits = record.trace.find("logits");
  for (size_t b = 0; b < rows.size(); ++b) {
    const auto row = static_cast<int64_t>(b);
    if (!logits) {
      add(missing_logits(), plan.name, record.step, row);
      return false;
    }
    const Span span = judged_span(record, rows[b]);
    if (span.count == 0) continue;
    look_for_far(plan, record, rows[b], b);
    std::vector<golden::LogitError>& errors = errors_[{&plan, b}];
    const size_t before = errors.size();
    if (add(golden::measure_logits(*rows[b].golden->golden.probe("logits"), {*logits, row, span.column}, span.position,
                                   span.count, errors),
            plan.name, record.step, row)) {
      if (keeps_evidence_) evidence_.tensors.push_back({"got/logits", *logits});
      return false;
    }
    for (size_t i = before; i < errors.size(); ++i) {
      errors[i].step = record.step;
      errors[i].is_cached_step = is_cached_step(plan, record);
    }
  }
  return true;
}

// A hint only: the golden says how far R's probes are, not how far P's are.
void LowPrecisionJudge::look_for_far(const LegPlan& plan, const CallRecord& record, const RowPlan& row, size_t b) {
  Far& far = far_[{&plan, b}];
  if (!far.probe.empty()) return;
  const golden::Golden& golden = row.golden->golden;
  const Span span = judged_span(record, row);
  const int64_t end = golden::first_marked(*error_of(golden, compute_), span.position + span.count);
  for (const golden::Record& probe : golden.probes) {
    const HostTensor* got = record.trace.find(probe.name);
    if (!got || probe.name == "logits" || probe.scale <= 0 || span.position >= end) continue;
    const auto positions = static_cast<size_t>(probe.positions);
    const golden::Bounds unit{std::vector<double>(positions, rounding_unit(compute_) * probe.scale),
                              std::vector<double>(positions, std::numeric_limits<double>::infinity())};
    for (int64_t i = 0; i < end - span.position; ++i) {
      const double used =
          golden::compare_sequence(probe, unit, *got, static_cast<int64_t>(b), span.column + i, span.position + i, 1)
              .used;
      if (used <= kFar) continue;
      far = {probe.name, record.step, span.position + i, used};
      return;
    }
  }
}

void LowPrecisionJudge::after_leg(const LegPlan& plan, const LegTrace& trace) {
  for (size_t b = 0; b < trace.rows.size() && !tally_.first; ++b)
    gate(plan.name, trace.rows[b], b, errors_[{&plan, b}], 1, &far_[{&plan, b}]);
}

void LowPrecisionJudge::gate(const std::string& leg, const RowPlan& row, size_t b,
                             const std::vector<golden::LogitError>& errors, double factor, const Far* far) {
  const golden::Golden& golden = row.golden->golden;
  const golden::PrecisionError& original = *error_of(golden, compute_);
  golden::LowPrecisionJudgement judgement =
      golden::judge_low_precision(*golden.probe("logits"), original, errors, rule_, factor);
  for (const std::string& note : judgement.notes) notes_.push_back(fmt::format("leg {} row {}: {}", leg, b, note));
  if (!judgement.hollow.empty() && hollow_.empty())
    hollow_ = fmt::format("leg {} row {}: {}", leg, b, judgement.hollow);
  if (judgement.tally.first && far && !far->probe.empty())
    judgement.tally.first->detail +=
        fmt::format("; first far from R: {} at position {} step {}, {:.2g} roundings of its scale", far->probe,
                    far->position, far->step, far->rounding_units);
  if (!add(std::move(judgement.tally), leg, -1, static_cast<int64_t>(b)) || !keeps_evidence_) return;
  std::vector<float> got, own;
  for (size_t i = 0; i < errors.size(); ++i) {
    got.push_back(static_cast<float>(errors[i].error));
    own.push_back(original.logits[i]);
  }
  const Shape shape{static_cast<int64_t>(got.size())};
  evidence_.tensors.push_back({"error/logits", HostTensor(shape, got)});
  evidence_.tensors.push_back({"original_error/logits", HostTensor(shape, own)});
  evidence_.text = fmt::format(
      "First finding: logits ({}), leg {}, row {}: {}.\n\n"
      "error/logits           largest error of the subject's sampled logits at each position of the row\n"
      "original_error/logits  the original's own in {}\n",
      tally_.first->what, leg_, tally_.first->row, tally_.first->detail, original.compute);
}

void LowPrecisionJudge::agree(const LegTrace& a, const LegTrace& b) {
  for (size_t i = 0; i < a.rows.size(); ++i)
    for (size_t j = 0; j < b.rows.size(); ++j)
      if (a.rows[i].input == b.rows[j].input) agree_rows(a, i, b, j);
}

void LowPrecisionJudge::agree_rows(const LegTrace& a, size_t a_row, const LegTrace& b, size_t b_row) {
  const std::string leg = a.plan->name + " = " + b.plan->name;
  const RowPlan& row = b.rows[b_row];
  const golden::Record& record = *row.golden->golden.probe("logits");
  std::vector<golden::LogitError> errors;
  for (const CallRecord& b_call : b.calls)
    for (const CallRecord& a_call : a.calls) {
      const Span left = judged_span(a_call, a.rows[a_row]), right = judged_span(b_call, row);
      const int64_t begin = std::max(left.position, right.position);
      const int64_t end = std::min(left.position + left.count, right.position + right.count);
      if (begin >= end) continue;
      const size_t before = errors.size();
      if (add(golden::measure_leg_logits(
                  record,
                  {*a_call.trace.find("logits"), static_cast<int64_t>(a_row), left.column + begin - left.position},
                  {*b_call.trace.find("logits"), static_cast<int64_t>(b_row), right.column + begin - right.position},
                  begin, end - begin, errors),
              leg, b_call.step, static_cast<int64_t>(b_row)))
        return;
      for (size_t i = before; i < errors.size(); ++i) {
        errors[i].step = b_call.step;
        errors[i].is_cached_step = is_cached_step(*b.plan, b_call) || is_cached_step(*a.plan, a_call);
      }
    }
  if (!errors.empty()) gate(leg, row, b_row, errors, rule_.leg_factor, nullptr);
}

}  // namespace assay
