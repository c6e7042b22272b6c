// assay golden: record, check, list, review, accept, reject. Recording is the only way a golden comes to be.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <tuple>

#include "cases/spec/error.hpp"
#include "cases/spec/select.hpp"
#include "golden/child.hpp"
#include "golden/current_weights.hpp"
#include "golden/life.hpp"
#include "golden/record.hpp"
#include "golden/review.hpp"
#include "runners/commands/commands.hpp"
#include "runners/process.hpp"

namespace assay {

namespace {

using golden::RunName;

struct Options {
  std::vector<std::string> selectors;
  bool only_missing = false;
};

// The runs that the selected cases cite; without a selector, those of every case.
std::vector<golden::Need> selected(const Corpus& corpus, const Options& options) {
  const std::vector<std::string> all = {"*"};
  return golden::needed(corpus, select_cases(corpus, options.selectors.empty() ? all : options.selectors));
}

// Everything at once takes an hour of the originals: it must be asked for.
void require_selectors(const Options& options, const std::string& command, const std::string& advice) {
  if (options.selectors.empty() && !options.only_missing)
    throw InputError(command, "no cases were named",
                     fmt::format("name a model, e.g. `assay {} mamba2`; '*' is everything{}", command, advice));
}

// One process of the original for each config, kind and choice of modules left unquantised.
std::vector<golden::RecordRequest> by_config(const Corpus& corpus, const std::vector<golden::Need>& needs) {
  std::map<std::tuple<std::string, std::string, std::vector<std::string>>, std::vector<std::string>> groups;
  for (const golden::Need& need : needs)
    groups[{need.name.config_id(), need.name.kind, need.unquantized}].push_back(need.name.input);
  std::vector<golden::RecordRequest> requests;
  for (const auto& [key, inputs] : groups) {
    const auto& [config_id, kind, unquantized] = key;
    requests.push_back({&corpus.configs.at(config_id), inputs, kind, unquantized});
  }
  return requests;
}

// Records one request after the other. A signal kills the original, removes what it left, and is a HarnessError; what
// was taken before stays.
void record_each(const std::vector<golden::RecordRequest>& requests, const std::filesystem::path& root,
                 const std::function<void(const golden::Golden&)>& take) {
  Interrupts interrupts;
  golden::RecordOptions options;
  options.root = root;
  options.python = golden::originals_python(root);
  options.progress = [](const std::string& text) { fmt::print(stderr, "  {}\n", text); };
  options.stop = interrupts.descriptors().front();
  const auto end_if_stopped = [&interrupts] {
    if (interrupts.is_stopped())
      throw HarnessError("golden", "interrupted by " + signal_text(interrupts.signal()),
                         "what was recorded before is kept");
  };
  for (const golden::RecordRequest& request : requests) {
    end_if_stopped();
    fmt::print(stderr, "{} {}: {} runs\n", request.config->id(), request.kind, request.inputs.size());
    try {
      for (const golden::Golden& result : golden::record(request, options)) take(result);
    } catch (const golden::Stopped&) {
      end_if_stopped();
      throw;
    }
  }
  end_if_stopped();
}

int record(const Options& options, const Invocation& invocation) {
  require_selectors(options, "golden record", ", --missing what is not recorded yet");
  const std::filesystem::path root = invocation.root();
  const Corpus corpus = read_corpus(root);
  std::vector<golden::Need> needs;
  for (golden::Need& need : selected(corpus, options)) {
    std::error_code ignored;
    if (!options.only_missing || !std::filesystem::exists(golden::committed_file(root, need.name), ignored))
      needs.push_back(std::move(need));
  }
  if (needs.empty()) {
    fmt::print("nothing to record: every run that these cases cite is there\n");
    return kExitAllowed;
  }
  size_t written = 0;
  record_each(by_config(corpus, needs), root, [&](const golden::Golden& result) {
    golden::write_pending(root, result);
    ++written;
  });
  fmt::print("{} pending; `assay golden review` shows what changed, `assay golden accept` takes them\n", written);
  return kExitAllowed;
}

void print_change(const golden::Change& change) {
  fmt::print("{:10} {:44}", golden::class_name(change.kind), change.id);
  if (change.kind != golden::Class::kNew && change.kind != golden::Class::kSame)
    fmt::print(" {:.3g} floors, {:.3g} ulp at {}, {} tokens changed", change.worst_floors, change.worst_ulps,
               change.worst_probe, change.tokens_changed);
  if (!change.note.empty()) fmt::print("  ({})", change.note);
  fmt::print("\n");
}

// Re-records in memory and compares; writes nothing. Same and noise are right on any processor.
int check(const Options& options, const Invocation& invocation) {
  require_selectors(options, "golden check", "");
  const std::filesystem::path root = invocation.root();
  const Corpus corpus = read_corpus(root);
  std::vector<golden::Need> needs;
  golden::CurrentWeights weights;
  size_t wrong = 0;
  std::map<golden::Class, size_t> counts;
  std::map<std::string, golden::Golden> committed;
  for (golden::Need& need : selected(corpus, options)) {
    const auto file = golden::committed_file(root, need.name);
    try {
      golden::Golden there = golden::read_golden(file);
      const ModelConfig& config = corpus.configs.at(need.name.config_id());
      std::string stale = golden::stale_reason(there, config, need.unquantized);
      if (stale.empty()) stale = weights.stale_reason(there, config);
      if (!stale.empty()) throw InputError(std::filesystem::relative(file, root).string(), "stale: " + stale);
      committed.emplace(need.name.id(), std::move(there));
      needs.push_back(std::move(need));
    } catch (const Error& error) {
      ++wrong;
      fmt::print("{:10} {:44} {}\n", "unusable", need.name.id(), error.what());
    }
  }
  if (!needs.empty())
    record_each(by_config(corpus, needs), root, [&](const golden::Golden& result) {
      const golden::Change change = golden::classify(committed.at(result.id()), result);
      ++counts[change.kind];
      if (change.kind != golden::Class::kSame && change.kind != golden::Class::kNoise) ++wrong;
      print_change(change);
    });
  std::string summary;
  for (const auto& [kind, count] : counts) summary += fmt::format("{} {}, ", count, golden::class_name(kind));
  fmt::print("{}{} wrong or unusable\n", summary, wrong);
  return wrong == 0 ? kExitAllowed : kExitVerdict;
}

int list(const Options& options, const Invocation& invocation) {
  const std::filesystem::path root = invocation.root();
  const Corpus corpus = read_corpus(root);
  std::map<std::string, bool> wanted;
  for (const golden::Need& need : selected(corpus, options)) wanted[need.name.id()] = true;
  size_t wrong = 0;
  uintmax_t bytes = 0;
  for (const golden::GoldenState& row : golden::state(corpus, root)) {
    if (!options.selectors.empty() && !wanted.count(row.name.id())) continue;
    if (row.standing != golden::Standing::kCommitted) ++wrong;
    bytes += row.bytes;
    fmt::print("{:12} {:44} {:7.1f} kB  {:2} cases{}{}\n", golden::standing_name(row.standing), row.name.id(),
               static_cast<double>(row.bytes) / 1000, row.cases.size(), row.pending ? "  pending" : "",
               row.reason.empty() ? "" : "  " + row.reason);
  }
  fmt::print("{:.2f} MB in all, {} not current\n", static_cast<double>(bytes) / 1e6, wrong);
  return wrong == 0 ? kExitAllowed : kExitVerdict;
}

// Pending runs whose id matches one of the globs or whose model is named; with no selector, all.
std::vector<RunName> pending_selected(const Options& options, const std::filesystem::path& root) {
  std::vector<RunName> chosen;
  for (const RunName& name : golden::pending(root)) {
    const bool matches = options.selectors.empty() ||
                         std::any_of(options.selectors.begin(), options.selectors.end(), [&](const std::string& glob) {
                           return glob == name.model || glob_matches(glob, name.id());
                         });
    if (matches) chosen.push_back(name);
  }
  if (chosen.empty())
    throw InputError("golden", fmt::format("no pending golden matches {}", fmt::join(options.selectors, " ")),
                     "`assay golden review` without a selector shows all that is pending");
  return chosen;
}

int say_nothing_pending() {
  fmt::print("nothing is pending\n");
  return kExitAllowed;
}

int review(const Options& options, const Invocation& invocation) {
  const std::filesystem::path root = invocation.root();
  if (golden::pending(root).empty()) return say_nothing_pending();
  for (const RunName& name : pending_selected(options, root)) print_change(golden::review(root, name));
  return kExitAllowed;
}

int settle(const Options& options, const Invocation& invocation, bool is_accepted) {
  const std::filesystem::path root = invocation.root();
  if (golden::pending(root).empty()) return say_nothing_pending();
  size_t count = 0;
  for (const RunName& name : pending_selected(options, root)) {
    const golden::Outcome outcome = is_accepted ? golden::accept(root, name) : golden::reject(root, name);
    if (outcome == golden::Outcome::kDone) ++count;
  }
  fmt::print("{} {}\n", count, is_accepted ? "accepted; commit golden/ and say why" : "rejected");
  return kExitAllowed;
}

}  // namespace

void add_golden(CLI::App& app, Invocation& invocation) {
  CLI::App* command =
      new_command(app, "golden", "Recorded runs of the originals: record, check, list, review, accept, reject",
                  "  assay golden record mamba2 --missing   pending goldens for what is not recorded yet\n"
                  "  assay golden review                    what changed, in units of the noise floor\n"
                  "  assay golden accept 'mamba2/*'         pending becomes committed\n"
                  "  assay golden check mamba2              re-record and compare; writes nothing ('*': an hour)\n"
                  "  assay golden list                      committed, missing, stale, unreferenced\n");
  command->require_subcommand(1);
  using Run = int (*)(const Options&, const Invocation&);
  const auto add = [&](const char* name, const char* text, const char* argument_text, Run run) {
    auto options = std::make_shared<Options>();
    CLI::App* sub = command->add_subcommand(name, text);
    sub->fallthrough();
    sub->add_option("selector", options->selectors, argument_text)->type_name("SELECTOR");
    sub->callback([options, run, &invocation] {
      invocation.action = [options, run, &invocation] { return run(*options, invocation); };
    });
    return std::make_pair(sub, options);
  };
  constexpr const char* kCases = "Cases whose runs are meant; '*' is every case";
  constexpr const char* kAllCases = "Cases whose runs are meant (default: all)";
  constexpr const char* kRuns = "Pending runs: a model or a glob over <model>/<config>.<input>.<kind> (default: all)";
  const auto [record_command, record_settings] =
      add("record", "Run the originals and write pending goldens (needs ci/originals)", kCases, record);
  record_command->add_flag("--missing", record_settings->only_missing,
                           "Only runs that have no committed golden; without a selector, of every case");
  add("check", "Re-record in memory and class each: same, noise, drift, different", kCases, check);
  add("list", "Every run: committed, missing, stale, unreferenced, unreadable", kAllCases, list);
  add("review", "Pending against committed", kRuns, review);
  add("accept", "Pending becomes committed", kRuns,
      [](const Options& options, const Invocation& call) { return settle(options, call, true); });
  add("reject", "Delete pending goldens", kRuns,
      [](const Options& options, const Invocation& call) { return settle(options, call, false); });
}

}  // namespace assay
