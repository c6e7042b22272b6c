// RunRequest: what `assay run` was asked for, and the cases that come of it.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cases/spec/case.hpp"
#include "runners/results.hpp"
#include "runners/verdict.hpp"

namespace assay {

struct RunRequest {
  std::vector<std::string> selectors, cases;  // --case
  std::vector<std::string> subjects;          // empty: every built-in one that works here
  std::string tier;                           // smoke, ci, slow: this one and those before it; empty: ci
  std::string out = "out/latest";
  std::string dump;
  std::string shard;  // "k/n"
  int64_t repeat = 1;
  bool resume = false;
  std::string rerun_failed;  // a results.jsonl
  double timeout_s = 300;
  int64_t jobs = 0;  // worker processes at once; 0: one for each hardware thread, for an accelerated subject one
  std::vector<std::string> fail_on;  // statuses that are not allowed after all
};

// Cases in order: by model, config (so that each is loaded once), then id.
struct RunSelection {
  std::vector<const Case*> cases;
  int64_t left_out_by_tier = 0;
  std::vector<std::string> missing_cells;  // "jamba/beams" (runners/coverage.hpp), where the selection is every model
};

// InputError for a time-out, folder, shard or list of subjects that cannot be meant; needs no corpus.
void check_options(const RunRequest& request);

// Of --fail-on, in any case. InputError with the nearest names.
std::vector<Status> statuses_named(const std::vector<std::string>& names);

// InputError: unknown names with the nearest ones, nothing selected, a shard that is none or empty.
RunSelection select(const RunRequest& request, const Corpus& corpus);

// "2/3" -> (2, 3). InputError unless 1 <= k <= n.
std::pair<int64_t, int64_t> parse_shard(const std::string& text);

// The selection as the run's line keeps it, and back where the request leaves a part open (--resume).
nlohmann::json selection_json(const RunRequest& request, int64_t count);
void restore_selection(RunRequest& request, const nlohmann::json& selection);

// (subject, case) pairs of a result file that are not allowed or did not finish. InputError when there is none.
std::set<std::pair<std::string, std::string>> failed_pairs(const ResultFile& file, const std::string& name);

}  // namespace assay
