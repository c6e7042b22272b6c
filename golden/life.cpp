#include "golden/life.hpp"

#include <algorithm>
#include <atomic>
#include <future>
#include <map>
#include <set>
#include <system_error>
#include <thread>

#include "cases/spec/error.hpp"
#include "cases/spec/json.hpp"
#include "golden/beams.hpp"
#include "golden/current_weights.hpp"

namespace assay::golden {
namespace {

namespace fs = std::filesystem;

fs::path file_below(const fs::path& folder, const RunName& name) {
  return folder / name.model / (name.config + "." + name.input + "." + name.kind + ".json");
}

fs::path pending_folder(const fs::path& root) { return root / "golden" / "pending"; }
fs::path committed_folder(const fs::path& root) { return root / "golden" / "models"; }

// Every .json below folder, as its path below it without the ending; sorted. A folder that is not there has none.
std::vector<std::string> files_below(const fs::path& folder) {
  std::vector<std::string> result;
  std::error_code error;
  if (!fs::exists(folder, error)) return result;
  for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    if (at->is_regular_file() && at->path().extension() == ".json")
      result.push_back(fs::relative(at->path(), folder).replace_extension().generic_string());
  if (error) throw HarnessError(folder.string(), "cannot be listed: " + error.message());
  std::sort(result.begin(), result.end());
  return result;
}

// Why the golden is of other weights; a checkpoint that cannot be read is not the one that was recorded.
std::string stale_weights(const Golden& golden, const ModelConfig& config, CurrentWeights& weights) {
  try {
    return weights.stale_reason(golden, config);
  } catch (const InputError& error) {
    return std::string("its weights cannot be read: ") + error.what();
  }
}

GoldenState committed_state(const Corpus& corpus, const fs::path& root, const Need& need, CurrentWeights& weights) {
  const RunName& name = need.name;
  GoldenState state{.name = name, .standing = Standing::kCommitted, .cases = need.cases};
  const fs::path file = committed_file(root, name);
  std::error_code ignored;
  state.bytes = fs::file_size(file, ignored);
  const auto set = [&](Standing standing, const std::string& reason) {
    state.standing = standing;
    state.reason = reason;
  };
  const auto config = corpus.configs.find(name.config_id());
  try {
    const Golden golden = read_golden(file);
    if (golden.id() != name.id())
      set(Standing::kUnreadable, "the file says it is " + golden.id());
    else if (config == corpus.configs.end())
      set(Standing::kUnreferenced, "there is no config " + name.config_id());
    else if (!config->second.inputs.contains(name.input))
      set(Standing::kUnreferenced, "its config has no input " + name.input);
    else if (need.cases.empty())
      set(Standing::kUnreferenced, "no case cites it");
    else if (std::string reason = stale_reason(golden, config->second, need.unquantized); !reason.empty())
      set(Standing::kStale, reason);
    else if (reason = stale_weights(golden, config->second, weights); !reason.empty())
      set(Standing::kStale, reason);
    else if (reason = weights.left_out(config->second);
             !reason.empty() && config->second.weights.kind == WeightsRecipe::Kind::kCheckpoint)
      state.reason = "weights not looked at: " + reason;
  } catch (const InputError& error) {
    set(Standing::kUnreadable, error.what());
  }
  return state;
}

// A golden of 100 kB takes 9 ms to read and check, so several are read at a time.
std::vector<GoldenState> committed_states(const Corpus& corpus, const fs::path& root, const std::vector<RunName>& names,
                                          const std::map<RunName, Need>& cited) {
  std::vector<GoldenState> states(names.size());
  std::atomic<size_t> next = 0;
  CurrentWeights weights(kMostListedElements);
  const auto work = [&] {
    for (size_t i = next++; i < names.size(); i = next++) {
      const auto need = cited.find(names[i]);
      states[i] = committed_state(corpus, root, need == cited.end() ? Need{.name = names[i]} : need->second, weights);
    }
  };
  std::vector<std::future<void>> readers;
  for (unsigned i = 0; i < std::max(1U, std::thread::hardware_concurrency()); ++i)
    readers.push_back(std::async(std::launch::async, work));
  for (std::future<void>& reader : readers) reader.get();
  return states;
}

}  // namespace

fs::path committed_file(const fs::path& root, const RunName& name) { return file_below(committed_folder(root), name); }

fs::path pending_file(const fs::path& root, const RunName& name) { return file_below(pending_folder(root), name); }

std::optional<RunName> run_name(std::string_view id) {
  const size_t slash = id.find('/');
  if (slash == std::string_view::npos || slash == 0) return std::nullopt;
  const std::string_view stem = id.substr(slash + 1);
  const size_t first = stem.find('.');
  if (first == std::string_view::npos) return std::nullopt;
  const size_t second = stem.find('.', first + 1);
  if (second == std::string_view::npos) return std::nullopt;
  RunName name{std::string(id.substr(0, slash)), std::string(stem.substr(0, first)),
               std::string(stem.substr(first + 1, second - first - 1)), std::string(stem.substr(second + 1))};
  if (name.config.empty() || name.input.empty() || name.kind.empty() || stem.find('/') != std::string_view::npos)
    return std::nullopt;
  return name;
}

std::vector<Need> needed(const Corpus& corpus, const std::vector<const Case*>& cases) {
  std::map<RunName, Need> cited;
  for (const Case* test_case : cases) {
    if (test_case->is_op_case()) continue;  // judged by the reference op, not by a recorded run
    const ModelConfig& config = corpus.config_of(*test_case);
    std::set<std::string> inputs;
    for (const Leg& leg : test_case->legs) {
      for (const Row& row : leg.rows) inputs.insert(row.input);
      if (leg.before) inputs.insert(leg.before->input);
    }
    for (const std::string& input : inputs) {
      const RunName name{config.model, config.name, input, test_case->kind};
      const auto [need, is_new] = cited.try_emplace(name, Need{name, {}, test_case->unquantized});
      if (!is_new && need->second.unquantized != test_case->unquantized)
        throw InputError(
            test_case->id,
            "\"unquantized\" is not that of " + need->second.cases.front() + ", which cites " + name.id() + " as well",
            "a run is recorded once: leave the same modules out in every case that cites it");
      need->second.cases.push_back(test_case->id);
    }
  }
  std::vector<Need> needs;
  for (auto& [name, need] : cited) needs.push_back(std::move(need));
  return needs;
}

std::string stale_reason(const Golden& golden, const ModelConfig& config, const std::vector<std::string>& unquantized) {
  if (golden.config_digest != config.digest) return "recorded from another state of the config (digest differs)";
  const auto found = config.inputs.find(golden.input);
  if (found == config.inputs.end()) return "the config no longer has the input " + golden.input;
  const Input& input = found->second;
  if (golden.prompt != input.tokens) return "recorded from other prompt tokens";
  if (static_cast<int64_t>(golden.tokens.size()) != input.length())
    return "recorded with another number of greedy tokens";
  if (beams_of(golden) != input.beams) return "recorded with another beam search";
  if (golden.quantization && golden.quantization->unquantized != unquantized)
    return "recorded with other modules left unquantised";
  if (input.is_logits_only != golden.is_logits_only) return "recorded with another set of probes";
  std::vector<int64_t> held;
  for (const StateRecord& states : golden.states) held.push_back(states.cut);
  return config.cuts_of(input) == held ? "" : "recorded with other state cuts";
}

std::string_view standing_name(Standing standing) {
  switch (standing) {
    case Standing::kCommitted:
      return "committed";
    case Standing::kMissing:
      return "missing";
    case Standing::kStale:
      return "stale";
    case Standing::kUnreferenced:
      return "unreferenced";
    case Standing::kUnreadable:
      return "unreadable";
  }
  return "unknown";
}

std::vector<GoldenState> state(const Corpus& corpus, const fs::path& root) {
  std::vector<const Case*> cases;
  for (const Case& test_case : corpus.cases) cases.push_back(&test_case);
  std::map<RunName, Need> cited;
  for (Need& need : needed(corpus, cases)) cited.emplace(need.name, std::move(need));

  std::map<RunName, GoldenState> rows;
  std::vector<RunName> committed;
  for (const std::string& id : files_below(committed_folder(root))) {
    if (const auto name = run_name(id))
      committed.push_back(*name);
    else
      rows[{id, "", "", ""}] = {.name = {id, "", "", ""},
                                .standing = Standing::kUnreadable,
                                .reason = "golden/models holds only <model>/<config>.<input>.<kind>.json"};
  }
  for (GoldenState& row : committed_states(corpus, root, committed, cited)) rows[row.name] = std::move(row);
  for (const auto& [name, need] : cited)
    if (!rows.contains(name)) rows[name] = {.name = name, .cases = need.cases};
  for (const RunName& name : pending(root)) {
    const auto [row, is_new] = rows.try_emplace(name, GoldenState{.name = name});
    row->second.pending = true;
    if (!is_new) continue;
    row->second.standing = Standing::kUnreferenced;
    row->second.reason = "only pending, and no case cites it";
  }
  std::vector<GoldenState> result;
  for (auto& [name, row] : rows) result.push_back(std::move(row));
  return result;
}

fs::path write_pending(const fs::path& root, const Golden& golden) {
  const fs::path file = pending_file(root, {golden.model, golden.config, golden.input, golden.kind});
  std::error_code error;
  fs::create_directories(file.parent_path(), error);
  if (error) throw HarnessError(file.parent_path().string(), "cannot be made: " + error.message());
  write_file(file, format(golden));
  return file;
}

std::vector<RunName> pending(const fs::path& root) {
  std::vector<RunName> result;
  for (const std::string& id : files_below(pending_folder(root)))
    if (const auto name = run_name(id)) result.push_back(*name);
  std::sort(result.begin(), result.end());
  return result;
}

Change review(const fs::path& root, const RunName& name) {
  const fs::path file = pending_file(root, name);
  if (!fs::exists(file)) throw InputError(name.id(), "nothing is pending", "assay golden record writes pending files");
  const Golden candidate = read_golden(file);
  const fs::path committed = committed_file(root, name);
  if (!fs::exists(committed)) return {.id = name.id(), .kind = Class::kNew};
  return classify(read_golden(committed), candidate);
}

Outcome accept(const fs::path& root, const RunName& name) {
  const fs::path from = pending_file(root, name), to = committed_file(root, name);
  if (!fs::exists(from)) return Outcome::kNothingPending;
  if (const Golden golden = read_golden(from); golden.id() != name.id())
    throw InputError(from.string(), "the file says it is " + golden.id(), "record it again");
  std::error_code error;
  fs::create_directories(to.parent_path(), error);
  // A rename, so that a reader sees the old golden or the new one.
  if (!error) fs::rename(from, to, error);
  if (error) throw HarnessError(to.string(), "cannot be replaced: " + error.message());
  return Outcome::kDone;
}

Outcome reject(const fs::path& root, const RunName& name) {
  std::error_code error;
  const bool is_removed = fs::remove(pending_file(root, name), error);
  if (error) throw HarnessError(pending_file(root, name).string(), "cannot be deleted: " + error.message());
  return is_removed ? Outcome::kDone : Outcome::kNothingPending;
}

}  // namespace assay::golden
