// assay show: one case, its legs and inputs, its goldens and how to repeat it.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <set>

#include "cases/spec/error.hpp"
#include "cases/spec/json.hpp"
#include "cases/spec/model_spec.hpp"
#include "cases/spec/op_case.hpp"
#include "cases/spec/select.hpp"
#include "golden/life.hpp"
#include "runners/commands/commands.hpp"

namespace assay {

namespace {

std::string calls_text(const std::vector<CallSize>& calls) {
  std::vector<std::string> parts;
  for (const CallSize& size : calls) {
    if (size.kind == CallSize::Kind::kEach) {
      parts.push_back("each");
    } else if (size.kind == CallSize::Kind::kRest) {
      parts.push_back("rest");
    } else {
      parts.push_back(std::to_string(size.columns));
    }
  }
  return fmt::format("{}", fmt::join(parts, " + "));
}

std::string row_text(const Row& row) {
  std::string text = row.input;
  if (row.length > 0) text += fmt::format("[:{}]", row.length);
  if (row.pad > 0) text += fmt::format(" after {} pads", row.pad);
  if (row.change) text += fmt::format(" with token {} at {}", row.change->token, row.change->position);
  return text;
}

const char* cache_text(CacheKind cache) {
  switch (cache) {
    case CacheKind::kNone:
      return "no cache";
    case CacheKind::kDynamic:
      return "dynamic cache";
    case CacheKind::kStatic:
      return "static cache";
  }
  return "";
}

const char* from_text(Leg::From from) {
  switch (from) {
    case Leg::From::kMemory:
      return "";
    case Leg::From::kSafetensors:
      return ", from one .safetensors";
    case Leg::From::kSharded:
      return ", from .safetensors shards";
    case Leg::From::kBin:
      return ", from one .bin";
    case Leg::From::kShardedBin:
      return ", from .bin shards";
  }
  return "";
}

void show_leg(const Leg& leg) {
  std::vector<std::string> rows;
  for (const Row& row : leg.rows) rows.push_back(row_text(row));
  fmt::print("  {:20} {}, calls {}", leg.name, cache_text(leg.cache),
             leg.calls.empty() ? "rest" : calls_text(leg.calls));
  fmt::print("{}{}", from_text(leg.from), leg.residency == Residency::kOffloaded ? ", offloaded" : "");
  if (leg.limit > 0) fmt::print(", limit {}", leg.limit);
  if (leg.free_running) fmt::print(", chooses its own tokens");
  if (leg.before)
    fmt::print(", after {} on {} session", leg.before->input, leg.before->same_session ? "the same" : "another");
  for (const auto& [op, form] : leg.forms) fmt::print(", {} {}", op, form == "*" ? "in every form" : form);
  fmt::print("\n");
  for (const std::string& row : rows) fmt::print("  {:20}   {}\n", "", row);
}

int show_op_case(const OpCase& op_case, const std::filesystem::path& root) {
  const OpSpec& spec = op_spec(op_case.op);
  fmt::print("{}\n  {}\n\nfile     {}\ntier     {}\nforms    {}\n", op_case.id, op_case.why,
             std::filesystem::relative(op_case.file, root).string(), op_case.tier,
             op_case.forms.empty() ? "every form of the subject" : fmt::format("{}", fmt::join(op_case.forms, ", ")));
  fmt::print("\n{} shapes\n", op_case.points.size());
  for (const OpPoint& point : op_case.points) fmt::print("  {}\n", point.text(spec));
  fmt::print("\nrepeat   assay run --subject fast --case {}\n", op_case.id);
  return kExitAllowed;
}

int show(const std::string& id, const Invocation& invocation) {
  const std::filesystem::path root = invocation.root();
  const Corpus corpus = read_corpus(root);
  for (const Case& row : corpus.op_cases)
    if (row.id == id) return show_op_case(read_op_case(row.file), root);
  const auto found =
      std::find_if(corpus.cases.begin(), corpus.cases.end(), [&](const Case& test_case) { return test_case.id == id; });
  if (found == corpus.cases.end()) {
    for (const BrokenCase& broken : corpus.broken)
      if (broken.id == id) broken.refuse();
    for (const ModelSpec& spec : model_specs())
      if (spec.name == id)
        throw InputError("case", fmt::format("'{}' is a model, not a case", id),
                         fmt::format("`assay list {}` shows its cases", id));
    std::vector<std::string> known;
    for (const std::vector<Case>* cases : {&corpus.cases, &corpus.op_cases})
      for (const Case& test_case : *cases) known.push_back(test_case.id);
    const auto close = nearest(id, known);
    throw InputError(
        "case", "there is no case '" + id + "'",
        close.empty() ? "`assay list` names them all" : fmt::format("nearest: {}", fmt::join(close, ", ")));
  }
  const Case& test_case = *found;
  const ModelConfig& config = corpus.config_of(test_case);
  fmt::print("{}\n  {}\n\n", test_case.id, test_case.why);
  fmt::print("file     {}\nconfig   {}  (digest {:.16})\ntier     {}\ndtype    {}\n",
             std::filesystem::relative(test_case.file, root).string(), config.id(), config.digest, test_case.tier,
             test_case.dtype);
  if (!test_case.quantization.empty())
    fmt::print(
        "weights  quantised to {}{}\n", test_case.quantization,
        test_case.unquantized.empty() ? "" : fmt::format(", but for {}", fmt::join(test_case.unquantized, ", ")));
  if (test_case.needs_gpu) fmt::print("needs    a GPU\n");
  if (test_case.bound) fmt::print("bound    factor {}: {}\n", test_case.bound->factor, test_case.bound->reason);
  if (!test_case.original_defect.is_null())
    fmt::print("defect   of the original: {} ({})\n", test_case.original_defect.value("what", ""),
               test_case.original_defect.value("releases", ""));
  fmt::print("\nlegs\n");
  for (const Leg& leg : test_case.legs) show_leg(leg);
  if (!test_case.agree.empty() || !test_case.agree_exactly.empty()) fmt::print("\nmust agree\n");
  for (const auto& [left, right] : test_case.agree) fmt::print("  {} = {}\n", left, right);
  for (const auto& [left, right] : test_case.agree_exactly) fmt::print("  {} = {}  bit for bit\n", left, right);
  fmt::print("\ninputs\n");
  std::set<std::string> inputs;
  for (const Leg& leg : test_case.legs) {
    for (const Row& row : leg.rows) inputs.insert(row.input);
    if (leg.before) inputs.insert(leg.before->input);
  }
  for (const std::string& name : inputs) {
    const Input& input = config.input(name);
    fmt::print("  {:12} {} tokens{}: {}\n", name, input.tokens.size(),
               input.greedy > 0 ? fmt::format(" and {} greedy", input.greedy) : "", fmt::join(input.tokens, " "));
  }
  fmt::print("\ngoldens\n");
  for (const golden::Need& need : golden::needed(corpus, {&test_case})) {
    const auto file = golden::committed_file(root, need.name);
    std::error_code ignored;
    fmt::print("  {}{}\n", std::filesystem::relative(file, root).string(),
               std::filesystem::exists(file, ignored) ? "" : "   (not recorded)");
  }
  fmt::print("\nrepeat   assay run --subject reference --case {}\n", test_case.id);
  return kExitAllowed;
}

}  // namespace

void add_show(CLI::App& app, Invocation& invocation) {
  auto id = std::make_shared<std::string>();
  CLI::App* command = new_command(app, "show", "One case: its legs, inputs, goldens and how to repeat it",
                                  "  assay show mamba2/cache.splits\n");
  command->add_option("case", *id, "Case id, as `assay list` prints it")->required()->type_name("CASE");
  command->callback([id, &invocation] { invocation.action = [id, &invocation] { return show(*id, invocation); }; });
}

}  // namespace assay
