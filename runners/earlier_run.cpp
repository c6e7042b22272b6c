#include "runners/earlier_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>

#include "cases/spec/error.hpp"
#include "runners/console.hpp"

namespace assay {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

// The subject arguments that opened the subjects of an earlier run, for the names that its rows carry.
std::vector<std::string> arguments_of(const json& run, const std::set<SubjectCase>& pairs) {
  std::vector<std::string> arguments;
  for (const json& subject : run.at("subjects")) {
    const std::string name = subject.at("name").get<std::string>();
    if (std::any_of(pairs.begin(), pairs.end(), [&name](const SubjectCase& pair) { return pair.first == name; }))
      arguments.push_back(subject.at("argument").get<std::string>());
  }
  return arguments;
}

// A selection as the arguments that make it; equal for equal selections, whatever their order.
std::string selection_text(const json& selection) {
  std::vector<std::string> words;
  const auto add_all = [&](const char* key, const std::string& option) {
    std::vector<std::string> values = selection.at(key).get<std::vector<std::string>>();
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
    for (const std::string& value : values) words.push_back(option + shell_quoted(value));
  };
  const auto add = [&](const char* key, const std::string& option, const std::string& usual) {
    const std::string value = selection.at(key).get<std::string>();
    if (!value.empty() && value != usual) words.push_back(option + shell_quoted(value));
  };
  add_all("selectors", "");
  add_all("cases", "--case ");
  add_all("subjects", "--subject ");
  add("tier", "--tier ", "ci");
  add("shard", "--shard ", "");
  add("rerun_failed", "--rerun-failed ", "");
  if (const int64_t repeat = selection.at("repeat").get<int64_t>(); repeat != 1)
    words.push_back(fmt::format("--repeat {}", repeat));
  return fmt::format("{}", fmt::join(words, " "));
}

ResultFile read_resumed(RunRequest& request) {
  const fs::path file = fs::path(request.out) / kResultsName;
  std::error_code ignored;
  if (!fs::exists(file, ignored))
    throw InputError("--resume",
                     fmt::format("there is no run to resume in '{}': it has no {}", request.out, kResultsName),
                     "name the run's folder with --out DIR, or leave --resume out");
  ResultFile earlier = read_results(file);
  const json& selection = earlier.run.at("selection");
  restore_selection(request, selection);
  const std::string there = selection_text(selection), here = selection_text(selection_json(request, 0));
  if (there != here)
    throw InputError("--resume",
                     fmt::format("the run in '{}' is another one, whose rows would be lost\n  there:  {}\n  now:    {}",
                                 request.out, there, here),
                     "leave the selection out to go on with that run, or choose another folder with --out DIR");
  return earlier;
}

void read_failed(RunRequest& request, EarlierRun& earlier) {
  const fs::path from = request.rerun_failed, to = fs::path(request.out) / kResultsName;
  std::error_code ignored;
  if (!fs::exists(from, ignored))
    throw InputError("--rerun-failed", fmt::format("there is no file '{}'", from.string()),
                     fmt::format("name the {} of a run, e.g. out/latest/{}", kResultsName, kResultsName));
  if (fs::equivalent(from, to, ignored))
    throw InputError("--rerun-failed",
                     fmt::format("this run would write over '{}', and its rows be lost", from.string()),
                     "choose another folder with --out DIR");
  const ResultFile file = read_results(from);
  earlier.only = failed_pairs(file, request.rerun_failed);
  if (request.subjects.empty()) request.subjects = arguments_of(file.run, earlier.only);
  if (!request.selectors.empty() || !request.cases.empty()) return;
  std::set<std::string> cases;
  for (const SubjectCase& pair : earlier.only) cases.insert(pair.second);
  request.cases.assign(cases.begin(), cases.end());
}

}  // namespace

std::map<SubjectCase, const Verdict*> EarlierRun::kept(const std::string& commit) const {
  std::map<SubjectCase, const Verdict*> rows;
  if (!resumed) return rows;
  const std::string theirs = resumed->run.at("commit").get<std::string>();
  if (theirs != commit)
    throw InputError("--resume", fmt::format("the run was of commit {}, this is {}", theirs, commit),
                     "run it again without --resume");
  for (const Verdict& row : resumed->rows)
    if (row.status != Status::kNotRun) rows[{row.subject, row.case_id}] = &row;
  return rows;
}

EarlierRun read_earlier(RunRequest& request) {
  EarlierRun earlier;
  if (request.resume) earlier.resumed = read_resumed(request);
  if (!request.rerun_failed.empty()) read_failed(request, earlier);
  return earlier;
}

}  // namespace assay
