#include "cases/spec/check_case.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "cases/spec/error.hpp"
#include "cases/spec/model_spec.hpp"
#include "cases/spec/op_forms.hpp"
#include "cases/spec/select.hpp"

namespace assay {

namespace {

// Where in the case file, for messages.
struct Spot {
  const Case& test_case;
  std::string pointer;
  [[noreturn]] void refuse(const std::string& member, const std::string& problem,
                           const std::string& advice = "") const {
    throw InputError(test_case.file.string() + " " + pointer + member, problem, advice);
  }
};

const Input& input_named(const ModelConfig& config, const std::string& name, const Spot& spot,
                         const std::string& member) {
  try {
    return config.input(name);
  } catch (const InputError& error) {
    spot.refuse(member, error.where() + " " + error.problem(), error.advice());
  }
}

void require_length(int64_t length, const Input& input, const Spot& spot, const std::string& member) {
  if (length > input.length())
    spot.refuse(member, fmt::format("{} tokens of input '{}', which has {} ({} and {} greedy)", length, input.name,
                                    input.length(), input.tokens.size(), input.greedy));
}

void require_token(int64_t token, int64_t vocabulary, const Spot& spot, const std::string& member) {
  if (token < 0 || token >= vocabulary)
    spot.refuse(member, fmt::format("token {} is outside the vocabulary [0, {})", token, vocabulary));
}

void check_beams(const Row& row, const Input::Beams& beams, const Input& input, const Spot& spot) {
  if (!input.beams)
    spot.refuse("/input", fmt::format("input '{}' has no \"beams\" for the leg's", input.name),
                "give the input \"beams\" in the config, or take another input");
  const bool is_exhaustive = beams.width == 0;
  if (is_exhaustive ? input.beams->steps < beams.steps : beams != *input.beams)
    spot.refuse("/input", fmt::format("input '{}' has {} beams for {} steps; the leg wants others", input.name,
                                      input.beams->width, input.beams->steps));
  if (row.length != 0) spot.refuse("/length", "beams start after the whole prompt", "leave its length out");
}

// Columns of the row: padding and tokens.
int64_t check_row(const Row& row, const Leg& leg, const ModelConfig& config, int64_t vocabulary, const Spot& spot) {
  const Input& input = input_named(config, row.input, spot, "/input");
  require_length(row.length, input, spot, "/length");
  const auto prompt = static_cast<int64_t>(input.tokens.size());
  if (leg.free_running && input.greedy == 0)
    spot.refuse("/input", fmt::format("a free-running leg needs greedy tokens, and input '{}' has none", input.name),
                "give the input \"greedy\" in the config, or take another input");
  if (leg.free_running && row.length != 0 && row.length != prompt)
    spot.refuse("/length", "a free-running row starts after the whole prompt", "leave its length out");
  if (leg.beams) check_beams(row, *leg.beams, input, spot);
  const int64_t length = row.length ? row.length : (leg.free_running ? prompt : input.length());
  if (row.change) {
    if (spot.test_case.aspect != "causal") spot.refuse("/change", "only a case of the aspect causal changes a token");
    if (row.change->position >= length)
      spot.refuse("/change/position", fmt::format("position {} of {} tokens", row.change->position, length));
    require_token(row.change->token, vocabulary, spot, "/change/token");
    if (row.change->position < prompt && input.tokens[static_cast<size_t>(row.change->position)] == row.change->token)
      spot.refuse("/change/token",
                  fmt::format("position {} already holds token {}", row.change->position, row.change->token));
  }
  return row.pad + length;
}

void check_leg(const Leg& leg, const ModelConfig& config, const ModelSpec& spec, const Spot& spot) {
  const int64_t vocabulary = spec.vocabulary(config);
  int64_t columns = 0;
  for (size_t i = 0; i < leg.rows.size(); ++i) {
    const Spot row_spot{spot.test_case, fmt::format("{}/rows/{}", spot.pointer, i)};
    const int64_t here = check_row(leg.rows[i], leg, config, vocabulary, row_spot);
    if (i == 0) columns = here;
    if (here != columns)
      row_spot.refuse("", fmt::format("pad + length is {} columns here and {} in row 0", here, columns),
                      "pad the shorter rows on the left");
  }
  require_token(leg.pad_token, vocabulary, spot, "/pad_token");

  int64_t named = 0;
  for (const CallSize& call : leg.calls) named += call.columns;
  const bool takes_rest = !leg.calls.empty() && leg.calls.back().kind != CallSize::Kind::kColumns;
  if (named > columns || (takes_rest && named == columns))
    spot.refuse("/calls", fmt::format("the calls take {} columns{}, the leg has {}", named,
                                      takes_rest ? " and leave none for the last" : "", columns));
  if (!takes_rest && named < columns)
    spot.refuse("/calls", fmt::format("the calls take {} of {} columns", named, columns),
                "end with \"rest\" or \"each\"");
  if (leg.before) {
    const Input& input = input_named(config, leg.before->input, spot, "/before/input");
    require_length(leg.before->length, input, spot, "/before/length");
  }
  const std::vector<std::string> ops = spec.ops(config);
  for (const auto& [op, form] : leg.forms) {
    if (std::find(ops.begin(), ops.end(), op) == ops.end())
      spot.refuse("/forms", fmt::format("{} has no op '{}'", config.model, op), "nearest: " + nearest_list(op, ops));
    check_form(op, form, fmt::format("{} {}/forms/{}", spot.test_case.file.string(), spot.pointer, op));
  }
}

const Leg& leg_named(const Case& test_case, const std::string& name) {
  return *std::find_if(test_case.legs.begin(), test_case.legs.end(), [&](const Leg& leg) { return leg.name == name; });
}

}  // namespace

void check_case(const Case& test_case, const Corpus& corpus) {
  const auto config = corpus.configs.find(test_case.model + "/" + test_case.config);
  if (config == corpus.configs.end()) {
    std::vector<std::string> known;
    for (const auto& entry : corpus.configs)
      if (entry.second.model == test_case.model) known.push_back(entry.second.name);
    throw InputError(test_case.file.string() + " /config",
                     test_case.model + " has no config '" + test_case.config + "'",
                     "nearest: " + nearest_list(test_case.config, known));
  }
  const ModelSpec& spec = model_spec(test_case.model);
  bool has_change = false;
  for (size_t i = 0; i < test_case.legs.size(); ++i) {
    const Leg& leg = test_case.legs[i];
    check_leg(leg, config->second, spec, {test_case, fmt::format("/legs/{}", i)});
    for (const Row& row : leg.rows) has_change = has_change || row.change;
  }
  if (test_case.aspect == "causal" && !has_change)
    throw InputError(test_case.file.string() + " /legs", "a case of the aspect causal changes a token in some row");
  for (size_t i = 0; i < test_case.agree.size(); ++i) {
    const Leg& first = leg_named(test_case, test_case.agree[i].first);
    const Leg& second = leg_named(test_case, test_case.agree[i].second);
    const bool has_common = std::any_of(first.rows.begin(), first.rows.end(), [&](const Row& row) {
      return std::any_of(second.rows.begin(), second.rows.end(),
                         [&](const Row& other) { return row.input == other.input; });
    });
    if (!has_common)
      throw InputError(fmt::format("{} /agree/{}", test_case.file.string(), i), "the two legs have no input in common");
  }
}

void CitedRuns::check(const Case& test_case) {
  if (test_case.quantization.empty()) return;
  std::set<std::string> inputs;
  for (const Leg& leg : test_case.legs) {
    for (const Row& row : leg.rows) inputs.insert(row.input);
    if (leg.before) inputs.insert(leg.before->input);
  }
  for (const std::string& input : inputs) {
    const Key run{test_case.model, test_case.config, input, test_case.kind};
    const First& first = cited_.try_emplace(run, First{test_case.id, test_case.unquantized}).first->second;
    if (first.unquantized != test_case.unquantized)
      throw InputError(test_case.file.string() + " /unquantized",
                       fmt::format("is not that of {}, which has input '{}' of {}/{} in {} too", first.id, input,
                                   test_case.model, test_case.config, test_case.kind),
                       "a run is recorded once: leave the same modules out, or take another input");
  }
}

}  // namespace assay
