// What goldens there are, which are needed, and how a pending one becomes committed. Functions return data and print
// nothing; `assay golden list|review|accept|reject` show it.
//
//   committed  golden/models/<model>/<config>.<input>.<kind>.json    read by runs
//   pending    golden/pending/<model>/<config>.<input>.<kind>.json   never read by a run, never committed
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cases/spec/case.hpp"
#include "golden/golden.hpp"
#include "golden/review.hpp"

namespace assay::golden {

// One run of an original, whether or not it was recorded.
struct RunName {
  std::string model, config, input, kind;
  std::string id() const { return model + "/" + config + "." + input + "." + kind; }
  std::string config_id() const { return model + "/" + config; }
  auto operator<=>(const RunName&) const = default;
};

std::filesystem::path committed_file(const std::filesystem::path& root, const RunName& name);
std::filesystem::path pending_file(const std::filesystem::path& root, const RunName& name);

// Back from a file's place, "<model>/<config>.<input>.<kind>"; nothing if it is not of that form. A config's or input's
// name has no dot.
std::optional<RunName> run_name(std::string_view id);

struct Need {
  RunName name;
  std::vector<std::string> cases;        // ids of the cases that cite it, in corpus order
  std::vector<std::string> unquantized;  // as those cases ask for
};

// Every run that the cases cite, sorted by name: the input of each row, and of each request made before (its greedy
// tokens come from the golden). InputError where two cases ask for one run with other modules left unquantised.
std::vector<Need> needed(const Corpus& corpus, const std::vector<const Case*>& cases);

// Why a golden no longer answers for its config and the cases that cite it: digest, prompt, number of tokens, state
// cuts or the modules left unquantised differ. Empty: it does. Whether the weights are still the same:
// golden/current_weights.hpp.
std::string stale_reason(const Golden& golden, const ModelConfig& config,
                         const std::vector<std::string>& unquantized = {});

enum class Standing {
  kCommitted,     // there, current and cited
  kMissing,       // cited, not there
  kStale,         // there, but its config or the config's weights have changed
  kUnreferenced,  // there (or pending alone), but no case cites it, or its config or input is gone
  kUnreadable,    // there, but not a golden
};
std::string_view standing_name(Standing standing);

struct GoldenState {
  RunName name;
  Standing standing = Standing::kMissing;  // of the committed file
  std::string reason;                      // for all but kMissing; of kCommitted why its weights were not looked at
  std::vector<std::string> cases;          // that cite it
  bool pending = false;                    // a pending file lies beside it
  uintmax_t bytes = 0;                     // of the committed file
};

// One row for each run that is cited, committed or pending, sorted by name. A file whose name is not of the form above
// is kUnreadable, with its path as model. Reads every committed golden, on all hardware threads: keep the result.
std::vector<GoldenState> state(const Corpus& corpus, const std::filesystem::path& root);

// Writes golden as pending (over an older pending one) and returns the file. HarnessError when it cannot be written.
std::filesystem::path write_pending(const std::filesystem::path& root, const Golden& golden);

std::vector<RunName> pending(const std::filesystem::path& root);  // sorted

// Pending against committed; kNew without a committed one. InputError if nothing is pending.
Change review(const std::filesystem::path& root, const RunName& name);

enum class Outcome {
  kDone,
  kNothingPending,  // a second accept or reject: nothing was changed
};

// Moves the pending file over the committed one. The pending file is read first: InputError if it is not a golden, and
// the committed one stays.
Outcome accept(const std::filesystem::path& root, const RunName& name);
Outcome reject(const std::filesystem::path& root, const RunName& name);  // deletes the pending file

}  // namespace assay::golden
