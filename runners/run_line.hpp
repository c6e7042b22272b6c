// The first line of results.jsonl: what ran where, and what was asked for.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runners/invocation.hpp"
#include "runners/run_request.hpp"
#include "runners/subject_process.hpp"

namespace assay {

// The commit of a checkout, "-dirty" behind it where files differ from it; empty where git cannot tell.
std::string commit_of(const std::filesystem::path& root);

nlohmann::json run_line(const RunRequest& request, const Invocation& invocation, const RunSelection& selection,
                        const std::vector<std::unique_ptr<SubjectProcess>>& subjects,
                        const std::vector<std::string>& left_out, int64_t jobs, const std::string& commit);

}  // namespace assay
