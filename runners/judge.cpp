#include "runners/judge.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "cases/spec/error.hpp"
#include "golden/tokens.hpp"

namespace assay {

namespace {

// Positions a row shares with its golden: what follows the first other token answers another question.
int64_t shared_positions(const RowPlan& row) {
  const std::vector<int64_t>& recorded = row.golden->golden.tokens;
  const auto end = std::mismatch(row.tokens.begin(), row.tokens.end(), recorded.begin(), recorded.end()).first;
  return end - row.tokens.begin();
}

// Names of the probes that any row's golden holds, in order of computation (a golden of a long run holds logits only).
std::vector<std::string> probe_names(const std::vector<RowPlan>& rows) {
  const golden::Golden* fullest = &rows.front().golden->golden;
  for (const RowPlan& row : rows)
    if (row.golden->golden.probes.size() > fullest->probes.size()) fullest = &row.golden->golden;
  std::vector<std::string> names;
  for (const golden::Record& record : fullest->probes) names.push_back(record.name);
  return names;
}

const NamedTensor* find(const std::vector<NamedTensor>& tensors, const std::string& name) {
  for (const NamedTensor& tensor : tensors)
    if (tensor.name == name) return &tensor;
  return nullptr;
}

const NamedTensor* neighbour(const std::vector<NamedTensor>& tensors, const NamedTensor* tensor, int64_t offset) {
  const int64_t index = tensor - tensors.data() + offset;
  return index >= 0 && index < static_cast<int64_t>(tensors.size()) ? &tensors[static_cast<size_t>(index)] : nullptr;
}

// The call of a free-running leg that fed a position: the prompt's calls, then one a token.
int64_t step_of(const LegTrace& trace, size_t row, int64_t position) {
  const int64_t column = position + trace.rows[row].pad;
  const LegPlan& plan = *trace.plan;
  if (column >= plan.columns) return static_cast<int64_t>(plan.calls.size()) + column - plan.columns;
  int64_t step = 0;
  for (int64_t end = plan.calls[0]; end <= column; end += plan.calls[static_cast<size_t>(step)]) ++step;
  return step;
}

// Columns that a leg feeds in all; beams are judged at their prefill.
int64_t end_of(const LegPlan& plan) {
  int64_t end = plan.columns;
  if (plan.leg->free_running)
    for (const RowPlan& row : plan.rows) end = std::max(end, row.pad + row.judged);
  return end;
}

bool all_finite(const HostTensor& got, int64_t row, int64_t column, int64_t count) {
  const Shape& shape = got.shape();
  if (shape.size() < 2 || row >= shape[0] || column + count > shape[1]) return true;  // compare_sequence reports shapes
  const int64_t width = got.count() / (shape[0] * shape[1]);
  const int64_t begin = (row * shape[1] + column) * width;
  for (int64_t i = begin; i < begin + count * width; ++i)
    if (!std::isfinite(got.at(i))) return false;
  return true;
}

}  // namespace

Judge::Judge(const std::vector<ProbeSpec>& probes, const golden::Rule& rule, bool keeps_evidence)
    : rule_(rule), keeps_evidence_(keeps_evidence) {
  for (const ProbeSpec& probe : probes) {
    layers_[probe.name] = probe.layer;
    if (!probe.follows.empty()) growing_.push_back(probe);
  }
}

const golden::Bounds& Judge::bounds(const golden::Record& record, int64_t steps) {
  const auto found = bounds_.find(&record);
  return found != bounds_.end() ? found->second
                                : bounds_.emplace(&record, golden::bounds_of(record, rule_, steps)).first->second;
}

bool Judge::add(golden::Tally tally, const std::string& leg, int64_t step, int64_t row) {
  const bool is_first = tally.first && !tally_.first;
  if (tally.first) {
    tally.first->step = step;
    tally.first->row = row;
    if (const auto layer = layers_.find(tally.first->probe); layer != layers_.end()) tally.first->layer = layer->second;
    if (is_first) leg_ = leg;
  }
  tally_.merge(tally);
  return is_first;
}

void Judge::missing(const std::string& probe, const std::string& leg, int64_t step, int64_t row) {
  golden::Tally tally;
  tally.first.emplace();
  tally.first->probe = probe;
  tally.first->what = "missing";
  add(std::move(tally), leg, step, row);
}

bool Judge::after_call(const LegPlan& plan, const CallRecord& record, const std::vector<RowPlan>& rows,
                       const Session& session) {
  compare_probes(plan, record, rows);
  if (plan.leg->cache != CacheKind::kNone) compare_states(plan, record, rows, session);
  watch_change(plan, record, rows);
  if (tally_.first) return false;
  if (!plan.leg->free_running) return true;
  return std::any_of(rows.begin(), rows.end(), [](const RowPlan& row) {
    return shared_positions(row) == static_cast<int64_t>(row.tokens.size());
  });
}

void Judge::compare_probes(const LegPlan& plan, const CallRecord& record, const std::vector<RowPlan>& rows) {
  const int64_t end = record.first + record.columns;
  for (const std::string& name : probe_names(rows)) {
    const NamedTensor* got = find(record.trace.probes, name);
    if (!got) {
      missing(name, plan.name, record.step, 0);
      continue;
    }
    for (size_t b = 0; b < rows.size(); ++b) {
      const golden::Record* recorded = rows[b].golden->golden.probe(name);
      if (!recorded) continue;
      const int64_t from = std::max(record.first, record.judge_from);
      Span span = real_span(from, end - from, rows[b].pad);
      span.column += from - record.first;
      span.count = std::min(span.count, shared_positions(rows[b]) - span.position);
      if (span.count <= 0) continue;
      const auto row = static_cast<int64_t>(b);
      if (add(golden::compare_sequence(*recorded, bounds(*recorded), got->value, row, span.column, span.position,
                                       span.count),
              plan.name, record.step, row))
        collect(neighbour(record.trace.probes, got, -1), *got, neighbour(record.trace.probes, got, 1), *recorded,
                &record);
    }
  }
}

void Judge::compare_states(const LegPlan& plan, const CallRecord& record, const std::vector<RowPlan>& rows,
                           const Session& session) {
  std::vector<const golden::StateRecord*> cuts;
  std::vector<std::string> names;
  for (const RowPlan& row : rows) {
    const int64_t length = record.first + record.columns - row.pad;
    cuts.push_back(length > 0 && length <= shared_positions(row) ? row.golden->golden.states_at(length) : nullptr);
    if (cuts.back() && names.empty())
      for (const golden::Record& state : cuts.back()->states) names.push_back(state.name);
  }
  const bool has_growing = !growing_.empty() && (!names.empty() || record.first + record.columns >= end_of(plan));
  if (names.empty() && !has_growing) return;
  const std::vector<NamedTensor> states = session.states();
  if (has_growing) compare_growing(plan, record, rows, states);
  for (const std::string& name : names) {
    const NamedTensor* got = find(states, name);
    if (!got) {
      missing(name, plan.name, record.step, 0);
      continue;
    }
    for (size_t b = 0; b < rows.size(); ++b) {
      if (!cuts[b]) continue;
      for (const golden::Record& recorded : cuts[b]->states) {
        if (recorded.name != name) continue;
        const auto row = static_cast<int64_t>(b);
        if (add(golden::compare_state(recorded, bounds(recorded, cuts[b]->cut), got->value, row), plan.name,
                record.step, row))
          collect(neighbour(states, got, -1), *got, neighbour(states, got, 1), recorded, &record);
      }
    }
  }
}

// Column pad + t of a row by the probe that the state follows, at position t.
void Judge::compare_growing(const LegPlan& plan, const CallRecord& record, const std::vector<RowPlan>& rows,
                            const std::vector<NamedTensor>& states) {
  const int64_t columns = record.first + record.columns;
  for (const ProbeSpec& state : growing_) {
    const NamedTensor* got = find(states, state.name);
    for (size_t b = 0; b < rows.size(); ++b) {
      const golden::Record* followed = rows[b].golden->golden.probe(state.follows);
      if (!followed) continue;
      const auto row = static_cast<int64_t>(b);
      if (!got) {
        missing(state.name, plan.name, record.step, row);
        break;
      }
      golden::Record column = *followed;
      column.name = state.name;
      column.shape = state.shape;
      const int64_t count = std::clamp<int64_t>(columns - rows[b].pad, 0, shared_positions(rows[b]));
      if (count == 0) continue;  // padding only so far
      if (add(golden::compare_growing(column, bounds(*followed), {got->value, row, rows[b].pad, columns}, count),
              plan.name, record.step, row))
        collect(neighbour(states, got, -1), *got, neighbour(states, got, 1), *followed, &record);
    }
  }
}

// From a changed token on, some logit must leave the bounds of the unchanged run, or the case shows nothing; and the
// new logits must still be numbers.
void Judge::watch_change(const LegPlan& plan, const CallRecord& record, const std::vector<RowPlan>& rows) {
  const HostTensor* logits = record.trace.find("logits");
  for (size_t b = 0; b < rows.size(); ++b) {
    if (!rows[b].change) continue;
    bool& moved = moved_[{&plan, b}];
    const golden::Record* recorded = rows[b].golden->golden.probe("logits");
    Span span = real_span(record.first, record.columns, rows[b].pad);
    const int64_t skipped = std::max<int64_t>(0, rows[b].change->position - span.position);
    if (!logits || !recorded || skipped >= span.count) continue;
    const auto row = static_cast<int64_t>(b);
    span = {span.column + skipped, span.position + skipped, span.count - skipped};
    const golden::Tally tally =
        golden::compare_sequence(*recorded, bounds(*recorded), *logits, row, span.column, span.position, span.count);
    if (!all_finite(*logits, row, span.column, span.count)) add(tally, plan.name, record.step, row);
    moved = moved || tally.first.has_value();
  }
}

void Judge::after_leg(const LegPlan& plan, const LegTrace& trace) {
  for (size_t b = 0; b < trace.rows.size(); ++b) {
    const RowPlan& row = trace.rows[b];
    if (row.change && !tally_.first && !moved_[{&plan, b}] && hollow_.empty())
      hollow_ = fmt::format("leg {}: changing token {} of row {} moved no logit", plan.name, row.change->position, b);
    if (plan.leg->free_running && !tally_.first) judge_row_tokens(plan, trace, b);
  }
}

void Judge::judge_row_tokens(const LegPlan& plan, const LegTrace& trace, size_t b) {
  const golden::Golden& golden = trace.rows[b].golden->golden;
  const golden::Record* logits = golden.probe("logits");
  if (!logits) throw InputError("golden " + golden.id(), "holds no logits, so its greedy tokens cannot be judged");
  const std::vector<int64_t>& tokens = trace.rows[b].tokens;
  const golden::TokenJudgement judgement = golden::judge_tokens(
      golden, std::span(tokens).first(std::min(tokens.size(), golden.tokens.size())), bounds(*logits));
  if (judgement.first) {
    golden::Tally tally;
    tally.first = judgement.first;
    // Found in the call that chose it: the one that fed the token before.
    add(std::move(tally), plan.name, step_of(trace, b, judgement.first->position - 1), static_cast<int64_t>(b));
  }
  std::string text = fmt::format("leg {} row {}: {} greedy tokens judged", plan.name, b, judgement.judged);
  if (judgement.near_tie) {
    const int64_t at = *judgement.near_tie;
    text += fmt::format(", near-tie after position {}", at);
    if (at >= 0 && at < static_cast<int64_t>(golden.gap.size()))
      text += fmt::format(" (gap {:.3g})", golden.gap[static_cast<size_t>(at)]);
  }
  notes_.push_back(text);
  if (hollow_.empty() && !judgement.hollow.empty())
    hollow_ = fmt::format("leg {} row {}: {}", plan.name, b, judgement.hollow);
}

}  // namespace assay
