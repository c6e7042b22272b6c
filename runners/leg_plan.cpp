#include "runners/leg_plan.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cases/spec/error.hpp"

namespace assay {

namespace {

std::string where(const Case& test_case, const Leg& leg) { return test_case.id + " leg '" + leg.name + "'"; }

// A row's whole sequence is its golden's: the prompt and, for a generate run, the greedy continuation.
RowPlan plan_row(const Case& test_case, const Leg& leg, const Row& row, const ModelConfig& config,
                 GoldenStore& goldens) {
  RowPlan plan;
  plan.input = row.input;
  plan.pad = row.pad;
  plan.change = row.change;
  plan.golden = &goldens.get(config, row.input, test_case.kind, test_case.unquantized);
  const std::vector<int64_t>& sequence = plan.golden->golden.tokens;
  const auto whole = static_cast<int64_t>(sequence.size());
  const auto prompt = static_cast<int64_t>(plan.golden->golden.prompt.size());
  const int64_t length = row.length ? row.length : (leg.free_running || leg.beams ? prompt : whole);
  if (length < 1 || length > whole)
    throw InputError(where(test_case, leg),
                     fmt::format("length {} of input '{}', which has {} tokens", length, row.input, whole));
  if (leg.free_running && length < prompt)
    throw InputError(where(test_case, leg), "a free-running row starts after the whole prompt; leave its length out");
  plan.tokens.assign(sequence.begin(), sequence.begin() + length);
  plan.judged = leg.free_running ? whole : length;
  if (row.change) {
    if (row.change->position < 0 || row.change->position >= length)
      throw InputError(where(test_case, leg), fmt::format("changes position {} of {}", row.change->position, length));
    if (plan.tokens[row.change->position] == row.change->token)
      throw InputError(where(test_case, leg),
                       fmt::format("changes position {} to the token it has", row.change->position));
    plan.tokens[row.change->position] = row.change->token;
    plan.judged = row.change->position;
  }
  return plan;
}

LegPlan plan_leg(const Case& test_case, const Leg& leg, const FormChoice& choice, const ModelConfig& config,
                 GoldenStore& goldens) {
  LegPlan plan;
  plan.leg = &leg;
  plan.name = leg.name + choice.suffix;
  plan.forms = choice.forms;
  plan.is_expanded = choice.is_expanded;
  if (leg.rows.empty()) throw InputError(where(test_case, leg), "has no rows");
  for (const Row& row : leg.rows) {
    plan.rows.push_back(plan_row(test_case, leg, row, config, goldens));
    const RowPlan& planned = plan.rows.back();
    const int64_t columns = planned.pad + static_cast<int64_t>(planned.tokens.size());
    if (plan.rows.size() == 1) plan.columns = columns;
    if (columns != plan.columns)
      throw InputError(where(test_case, leg),
                       fmt::format("row {} has {} columns, row 0 has {}", plan.rows.size() - 1, columns, plan.columns));
    plan.limit = std::max(plan.limit, planned.pad + (leg.free_running ? planned.judged : 0));
  }
  plan.limit = std::max(plan.limit, plan.columns);
  plan.calls = call_sizes(leg.calls, plan.columns, where(test_case, leg));
  if (leg.cache == CacheKind::kNone && plan.calls.size() > 1)
    throw InputError(where(test_case, leg), "several calls without a cache",
                     "say \"calls\": [\"rest\"] or give it a cache");
  if (leg.before) {
    const Input& input = config.input(leg.before->input);
    plan.before = input.tokens;
    if (leg.before->length > static_cast<int64_t>(plan.before.size()) || (leg.before->length == 0 && input.greedy > 0))
      plan.before = goldens.get(config, input.name, test_case.kind, test_case.unquantized).golden.tokens;
    if (leg.before->length > static_cast<int64_t>(plan.before.size()))
      throw InputError(where(test_case, leg),
                       fmt::format("before: length {} of {} tokens", leg.before->length, plan.before.size()));
    if (leg.before->length > 0) plan.before.resize(leg.before->length);
    plan.limit = std::max(plan.limit, static_cast<int64_t>(plan.before.size()));
  }
  if (leg.limit > 0 && leg.limit < plan.limit)
    throw InputError(where(test_case, leg),
                     fmt::format("has a limit of {} columns and needs {}", leg.limit, plan.limit));
  if (leg.limit > 0) plan.limit = leg.limit;
  return plan;
}

}  // namespace

std::vector<FormChoice> expand_forms(const Leg& leg, const Capabilities& capabilities) {
  std::vector<FormChoice> choices{FormChoice{}};
  for (const auto& [op, form] : leg.forms) {
    const auto declared = capabilities.forms.find(op);
    if (form == "*" && declared == capabilities.forms.end()) continue;
    if (form != "*") {
      if (declared == capabilities.forms.end() ||
          std::count(declared->second.begin(), declared->second.end(), form) == 0)
        throw NoVerdict(Status::kSkip,
                        fmt::format("{} cannot be told to run {} in its {} form", capabilities.name, op, form),
                        SkipReason::kNoForm);
      for (FormChoice& choice : choices) choice.forms[op] = form;
      continue;
    }
    std::vector<FormChoice> product;
    for (const FormChoice& choice : choices)
      for (const std::string& one : declared->second) {
        FormChoice next = choice;
        next.forms[op] = one;
        next.is_expanded = true;
        next.suffix += fmt::format("[{}={}]", op, one);
        product.push_back(next);
      }
    choices = std::move(product);
  }
  return choices;
}

std::vector<int64_t> call_sizes(const std::vector<CallSize>& calls, int64_t columns, const std::string& leg) {
  if (calls.empty()) return {columns};
  std::vector<int64_t> sizes;
  int64_t left = columns;
  for (const CallSize& call : calls) {
    switch (call.kind) {
      case CallSize::Kind::kColumns:
        if (call.columns < 1 || call.columns > left)
          throw InputError(leg,
                           fmt::format("a call of {} columns where {} of {} are left", call.columns, left, columns));
        sizes.push_back(call.columns);
        left -= call.columns;
        break;
      case CallSize::Kind::kEach:
        sizes.insert(sizes.end(), static_cast<size_t>(left), 1);
        left = 0;
        break;
      case CallSize::Kind::kRest:
        if (left > 0) sizes.push_back(left);
        left = 0;
        break;
    }
  }
  if (left > 0)
    throw InputError(leg, fmt::format("its calls leave {} of {} columns out", left, columns),
                     "end with \"rest\" or \"each\"");
  return sizes;
}

std::vector<LegPlan> plan_legs(const Case& test_case, const ModelConfig& config, const Capabilities& capabilities,
                               GoldenStore& goldens) {
  std::vector<LegPlan> plans;
  for (const Leg& leg : test_case.legs)
    for (const FormChoice& choice : expand_forms(leg, capabilities))
      plans.push_back(plan_leg(test_case, leg, choice, config, goldens));
  if (plans.empty()) throw InputError(test_case.id, "has no legs");
  return plans;
}

HostTensor token_block(const std::vector<RowPlan>& rows, int64_t pad_token, int64_t first, int64_t count) {
  std::vector<int64_t> tokens;
  tokens.reserve(rows.size() * static_cast<size_t>(count));
  for (const RowPlan& row : rows)
    for (int64_t column = first; column < first + count; ++column)
      tokens.push_back(column < row.pad ? pad_token : row.tokens.at(static_cast<size_t>(column - row.pad)));
  return HostTensor({static_cast<int64_t>(rows.size()), count}, tokens);
}

HostTensor mask_block(const std::vector<RowPlan>& rows, int64_t columns) {
  if (std::all_of(rows.begin(), rows.end(), [](const RowPlan& row) { return row.pad == 0; })) return {};
  HostTensor mask(DType::kU8, {static_cast<int64_t>(rows.size()), columns});
  const std::span<uint8_t> values = mask.values<uint8_t>();
  for (size_t b = 0; b < rows.size(); ++b)
    for (int64_t column = rows[b].pad; column < columns; ++column)
      values[b * static_cast<size_t>(columns) + static_cast<size_t>(column)] = 1;
  return mask;
}

Span real_span(int64_t first, int64_t count, int64_t pad) {
  const int64_t begin = std::max(first, pad);
  const int64_t end = first + count;
  if (begin >= end) return {};
  return {begin - first, begin - pad, end - begin};
}

}  // namespace assay
