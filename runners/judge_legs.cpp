// Judge: leg against leg, and what --dump writes about a finding.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "runners/judge.hpp"

namespace assay {

namespace {

int64_t common_prefix(const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
  return std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin();
}

double largest(const HostTensor& states, int64_t row) {
  const std::span<const float> all = states.values<float>();
  const size_t width = all.size() / static_cast<size_t>(states.shape().at(0));
  double found = 0;
  for (const float value : all.subspan(static_cast<size_t>(row) * width, width))
    found = std::max(found, static_cast<double>(std::abs(value)));
  return found;
}

// Bounds of a state that the golden did not record, from those of one that it did: noise grows with the state's size
// and with the root of the tokens that it has taken in.
golden::Bounds borrowed(golden::Bounds bounds, double size, double tokens) {
  const double growth = std::max(1.0, size) * std::sqrt(std::max(1.0, tokens));
  for (double& bound : bounds.element) bound *= growth;
  for (double& bound : bounds.norm) bound *= growth;
  return bounds;
}

// Bounds for states at a length that the golden has no cut for come from the next longer cut, or the last.
const golden::StateRecord* nearest_cut(const golden::Golden& golden, int64_t length) {
  const golden::StateRecord* found = nullptr;
  for (const golden::StateRecord& cut : golden.states) {
    found = &cut;
    if (cut.cut >= length) break;
  }
  return found;
}

const NamedTensor* find(const std::vector<NamedTensor>& tensors, const std::string& name) {
  for (const NamedTensor& tensor : tensors)
    if (tensor.name == name) return &tensor;
  return nullptr;
}

}  // namespace

void Judge::agree(const LegTrace& a, const LegTrace& b) {
  const std::string leg = a.plan->name + " = " + b.plan->name;
  for (size_t i = 0; i < a.rows.size(); ++i)
    for (size_t j = 0; j < b.rows.size(); ++j)
      if (a.rows[i].input == b.rows[j].input) agree_rows(a, i, b, j, leg);
}

void Judge::agree_rows(const LegTrace& a, size_t a_row, const LegTrace& b, size_t b_row, const std::string& leg) {
  const RowPlan &a_plan = a.rows[a_row], &b_plan = b.rows[b_row];
  const golden::Golden& golden = b_plan.golden->golden;
  // Beyond the golden's own positions there is no bound.
  const int64_t common =
      std::min(common_prefix(a_plan.tokens, b_plan.tokens), static_cast<int64_t>(golden.tokens.size()));
  const auto row = static_cast<int64_t>(b_row);
  for (const CallRecord& b_call : b.calls) {
    const Span b_span = fresh_span(b_call, b_plan, common);
    if (b_span.count == 0) continue;
    for (const golden::Record& record : golden.probes) {
      const NamedTensor* got = find(b_call.trace.probes, record.name);
      if (!got) continue;  // the golden's comparison has reported it
      for (const CallRecord& a_call : a.calls) {
        const NamedTensor* expected = find(a_call.trace.probes, record.name);
        const Span a_span = fresh_span(a_call, a_plan, common);
        const int64_t begin = std::max(a_span.position, b_span.position);
        const int64_t end = std::min(a_span.position + a_span.count, b_span.position + b_span.count);
        if (!expected || begin >= end) continue;
        if (add(golden::compare_legs(record, bounds(record), expected->value, static_cast<int64_t>(a_row),
                                     a_span.column + begin - a_span.position, got->value, row,
                                     b_span.column + begin - b_span.position, begin, end - begin),
                leg, b_call.step, row)) {
          collect(nullptr, *got, nullptr, record, &b_call);
          if (keeps_evidence_) evidence_.tensors.push_back({"other_leg/" + expected->name, expected->value});
        }
      }
    }
  }
  agree_states(a, a_row, b, b_row, leg);
}

// The states at the end of two legs that were fed the same tokens.
void Judge::agree_states(const LegTrace& a, size_t a_row, const LegTrace& b, size_t b_row, const std::string& leg) {
  const RowPlan& b_plan = b.rows[b_row];
  if (a.rows[a_row].tokens != b_plan.tokens) return;
  agree_growing(a, a_row, b, b_row, leg);
  const golden::Golden& golden = b_plan.golden->golden;
  const auto length = static_cast<int64_t>(b_plan.tokens.size()), row = static_cast<int64_t>(b_row);
  const golden::StateRecord* cut = nearest_cut(golden, length);
  if (!cut || a.states.empty() || b.states.empty()) return;
  const bool is_recorded = cut->cut == length && common_prefix(b_plan.tokens, golden.tokens) >= length;
  for (const golden::Record& record : cut->states) {
    const NamedTensor* expected = find(a.states, record.name);
    const NamedTensor* got = find(b.states, record.name);
    if (!expected || !got) continue;
    golden::Bounds limits = bounds(record, cut->cut);
    if (!is_recorded && expected->value.dtype() == DType::kF32 && !expected->value.shape().empty() && record.scale > 0)
      limits = borrowed(std::move(limits), largest(expected->value, static_cast<int64_t>(a_row)) / record.scale,
                        static_cast<double>(length) / static_cast<double>(cut->cut));
    if (add(golden::compare_leg_states(record, limits, expected->value, static_cast<int64_t>(a_row), got->value, row),
            leg, b.calls.empty() ? -1 : b.calls.back().step, row)) {
      collect(nullptr, *got, nullptr, record, nullptr);
      if (keeps_evidence_) evidence_.tensors.push_back({"other_leg/" + expected->name, expected->value});
    }
  }
}

// Every element of the real columns. Where the golden lacks the probe that a state follows, the bound is a part of the
// state's largest value: the part that the logits, which all noise ends in, have of theirs.
void Judge::agree_growing(const LegTrace& a, size_t a_row, const LegTrace& b, size_t b_row, const std::string& leg) {
  const RowPlan &a_plan = a.rows[a_row], &b_plan = b.rows[b_row];
  const golden::Golden& golden = b_plan.golden->golden;
  const auto length = static_cast<int64_t>(b_plan.tokens.size());
  for (const ProbeSpec& state : growing_) {
    const NamedTensor *expected = find(a.states, state.name), *got = find(b.states, state.name);
    if (a.states.empty() || b.states.empty()) return;
    if (!expected || !got) {
      missing(state.name, leg, b.calls.empty() ? -1 : b.calls.back().step, static_cast<int64_t>(b_row));
      return;
    }
    golden::Record column{.name = state.name, .shape = state.shape, .positions = length};
    golden::Bounds limits;
    const golden::Record* followed = golden.probe(state.follows);
    if (followed && followed->positions >= length) {
      limits = bounds(*followed);
      limits.element.resize(static_cast<size_t>(length));
    } else {
      const golden::Record* logits = golden.probe("logits");
      const golden::Bounds& known = bounds(*logits);
      const double part = *std::max_element(known.element.begin(), known.element.end()) / logits->scale;
      double largest = 0;
      for (const float value : expected->value.values<float>())
        largest = std::max(largest, std::abs(static_cast<double>(value)));
      limits.element.assign(static_cast<size_t>(length), part * largest);
    }
    limits.norm = limits.element;
    const golden::GrowingRow a_state{expected->value, static_cast<int64_t>(a_row), a_plan.pad, a_plan.pad + length};
    const golden::GrowingRow b_state{got->value, static_cast<int64_t>(b_row), b_plan.pad, b_plan.pad + length};
    if (add(golden::compare_leg_growing(column, limits, a_state, b_state, length), leg,
            b.calls.empty() ? -1 : b.calls.back().step, static_cast<int64_t>(b_row)) &&
        keeps_evidence_) {
      evidence_.tensors.push_back({"got/" + got->name, got->value});
      evidence_.tensors.push_back({"other_leg/" + expected->name, expected->value});
    }
  }
}

void Judge::collect(const NamedTensor* before, const NamedTensor& failing, const NamedTensor* after,
                    const golden::Record& record, const CallRecord* call) {
  if (!keeps_evidence_) return;
  evidence_.tensors.push_back({"got/" + failing.name, failing.value});
  if (before) evidence_.tensors.push_back({"got_before/" + before->name, before->value});
  if (after) evidence_.tensors.push_back({"got_after/" + after->name, after->value});
  const golden::Bounds& limits = bounds(record);
  const auto add_values = [this](const std::string& name, Shape shape, const std::vector<float>& values) {
    if (element_count(shape) == static_cast<int64_t>(values.size()))
      evidence_.tensors.push_back({name, HostTensor(std::move(shape), values)});
  };
  add_values("expected/" + record.name, {record.positions, record.columns()}, record.values);
  add_values("expected_norm/" + record.name, {record.positions}, record.norm);
  add_values("bound/" + record.name, {record.positions},
             std::vector<float>(limits.element.begin(), limits.element.end()));
  if (!record.sample.empty())
    evidence_.tensors.push_back(
        {"sample/" + record.name, HostTensor({static_cast<int64_t>(record.sample.size())}, record.sample)});
  std::string tokens;
  if (call) {
    evidence_.tensors.push_back({"tokens", call->call.tokens});
    if (!call->call.mask.absent()) evidence_.tensors.push_back({"mask", call->call.mask});
    tokens = fmt::format("tokens, mask          the failing call (step {}): columns {} to {} of its leg\n", call->step,
                         call->first, call->first + call->columns - 1);
  }
  const golden::Finding& first = *tally_.first;
  evidence_.text = fmt::format(
      "First finding: {} ({}), leg {}, step {}, row {}, position {}: expected {:.9g}, got {:.9g}, bound {:.3g}; "
      "{} of {} elements out of bounds.\n\n"
      "got/NAME              the subject's tensor, all rows: [B, L, ...] of the failing call, or a state [B, ...]\n"
      "got_before/, got_after/  the subject's tensors computed just before and after it\n"
      "expected/NAME         the golden's recorded elements [positions, sample] of this row's input\n"
      "sample/NAME           which flat elements of one position those are; absent: all\n"
      "expected_norm/NAME    the golden's norm of each position; bound/NAME: the bound of each position\n"
      "other_leg/NAME        the other leg's tensor, where two legs disagree\n{}",
      first.probe, first.what, leg_, first.step, first.row, first.position, first.expected, first.got, first.bound,
      first.bad, first.of, tokens);
}

}  // namespace assay
