// What an earlier run leaves to this one: --resume and --rerun-failed.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "runners/results.hpp"
#include "runners/run_request.hpp"

namespace assay {

using SubjectCase = std::pair<std::string, std::string>;

struct EarlierRun {
  std::optional<ResultFile> resumed;
  std::set<SubjectCase> only;  // --rerun-failed: these and no others, if any

  // The resumed run's rows that stay, those that finished. InputError when they are of another commit.
  std::map<SubjectCase, const Verdict*> kept(const std::string& commit) const;
};

// Reads the files that the request names and completes it from them. InputError: nothing to resume; --resume of another
// selection, whose rows would be lost; --rerun-failed of the file that this run is about to write.
EarlierRun read_earlier(RunRequest& request);

}  // namespace assay
