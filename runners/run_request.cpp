#include "runners/run_request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <iterator>
#include <tuple>

#include "cases/spec/error.hpp"
#include "cases/spec/model_spec.hpp"
#include "cases/spec/select.hpp"
#include "runners/coverage.hpp"

namespace assay {

namespace {

constexpr const char* kTiers[] = {"smoke", "ci", "slow"};

int64_t tier_rank(const std::string& tier) {
  const auto found = std::find(std::begin(kTiers), std::end(kTiers), tier);
  if (found == std::end(kTiers))
    throw InputError("--tier", fmt::format("unknown tier '{}'", tier), "one of smoke, ci, slow");
  return found - std::begin(kTiers);
}

const Case& case_named(const Corpus& corpus, const std::string& id) {
  for (const BrokenCase& broken : corpus.broken)
    if (broken.id == id) broken.refuse();
  std::vector<std::string> known;
  for (const std::vector<Case>* cases : {&corpus.cases, &corpus.op_cases})
    for (const Case& test_case : *cases) {
      if (test_case.id == id) return test_case;
      known.push_back(test_case.id);
    }
  std::string advice = "`assay list` shows every case";
  if (const auto close = nearest(id, known); !close.empty())
    advice = fmt::format("nearest: {}", fmt::join(close, ", "));
  throw InputError("--case", fmt::format("unknown case '{}'", id), advice);
}

}  // namespace

void check_options(const RunRequest& request) {
  constexpr double kLongest_s = 7 * 86400;
  if (!(request.timeout_s > 0 && request.timeout_s <= kLongest_s))
    throw InputError(
        "--timeout",
        fmt::format("{} is not a number of seconds above 0 and at most {:.0f}", request.timeout_s, kLongest_s),
        "e.g. --timeout 300");
  if (request.out.empty())
    throw InputError("--out", "the name of the folder is empty",
                     "give a folder, e.g. --out out/latest, or leave --out out");
  for (size_t i = 0; i < request.subjects.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (request.subjects[i] == request.subjects[j])
        throw InputError("--subject", fmt::format("'{}' is given twice", request.subjects[i]),
                         "name each subject once");
  if (!request.shard.empty()) parse_shard(request.shard);
}

std::vector<Status> statuses_named(const std::vector<std::string>& names) {
  std::vector<Status> result;
  for (std::string name : names) {
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    std::vector<std::string> known;
    for (int i = 0; i <= static_cast<int>(Status::kNotRun); ++i)
      known.emplace_back(status_name(static_cast<Status>(i)));
    if (std::find(known.begin(), known.end(), name) == known.end())
      throw InputError("--fail-on", fmt::format("unknown status '{}'", name), "nearest: " + nearest_list(name, known));
    result.push_back(status_from_name(name));
  }
  return result;
}

RunSelection select(const RunRequest& request, const Corpus& corpus) {
  if (request.selectors.empty() && request.cases.empty())
    throw InputError("run", "no cases were named", "name a model, e.g. `assay run mamba2`; '*' is everything");
  RunSelection selection;
  if (!request.selectors.empty()) {
    const int64_t rank = tier_rank(request.tier.empty() ? "ci" : request.tier);
    for (const Case* test_case : select_cases(corpus, request.selectors)) {
      if (tier_rank(test_case->tier) <= rank)
        selection.cases.push_back(test_case);
      else
        ++selection.left_out_by_tier;
    }
    // A whole-corpus run answers for what the corpus lacks, too.
    if (whole_models(corpus, request.selectors).size() == model_specs().size())
      selection.missing_cells = missing_cells(corpus, all_models());
  }
  // A case named by its id runs whatever its tier.
  for (const std::string& id : request.cases) selection.cases.push_back(&case_named(corpus, id));
  const auto order = [](const Case* test_case) { return std::tie(test_case->model, test_case->config, test_case->id); };
  std::sort(selection.cases.begin(), selection.cases.end(),
            [&order](const Case* a, const Case* b) { return order(a) < order(b); });
  selection.cases.erase(std::unique(selection.cases.begin(), selection.cases.end()), selection.cases.end());
  if (selection.cases.empty())
    throw InputError("run", fmt::format("all {} selected cases are of a higher tier", selection.left_out_by_tier),
                     "--tier slow runs every tier");
  if (!request.shard.empty()) {
    const auto [k, n] = parse_shard(request.shard);
    std::vector<const Case*> part;
    for (size_t i = 0; i < selection.cases.size(); ++i)
      if (static_cast<int64_t>(i) % n == k - 1) part.push_back(selection.cases[i]);
    if (part.empty())
      throw InputError(
          "--shard",
          fmt::format(
              "{} holds none of the {} selected cases: they are dealt out one by one, so the first shards get them",
              request.shard, selection.cases.size()),
          fmt::format("use at most {} shards, or select more cases", selection.cases.size()));
    selection.cases = std::move(part);
  }
  return selection;
}

std::pair<int64_t, int64_t> parse_shard(const std::string& text) {
  int64_t k = 0, n = 0;
  const char* end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, k);
  if (first.ec == std::errc() && first.ptr != end && *first.ptr == '/') {
    const auto second = std::from_chars(first.ptr + 1, end, n);
    if (second.ec == std::errc() && second.ptr == end && k >= 1 && k <= n) return {k, n};
  }
  throw InputError("--shard", fmt::format("'{}' is not k/n with 1 <= k <= n", text), "e.g. --shard 1/4");
}

nlohmann::json selection_json(const RunRequest& request, int64_t count) {
  return {{"selectors", request.selectors},
          {"cases", request.cases},
          {"subjects", request.subjects},
          {"tier", request.tier},
          {"shard", request.shard},
          {"repeat", request.repeat},
          {"count", count},
          {"rerun_failed", request.rerun_failed}};
}

void restore_selection(RunRequest& request, const nlohmann::json& selection) {
  if (request.selectors.empty() && request.cases.empty()) {
    request.selectors = selection.at("selectors").get<std::vector<std::string>>();
    request.cases = selection.at("cases").get<std::vector<std::string>>();
  }
  if (request.subjects.empty()) request.subjects = selection.at("subjects").get<std::vector<std::string>>();
  if (request.tier.empty()) request.tier = selection.at("tier").get<std::string>();
  if (request.shard.empty()) request.shard = selection.at("shard").get<std::string>();
  if (request.repeat == 1) request.repeat = selection.at("repeat").get<int64_t>();
  if (request.rerun_failed.empty()) request.rerun_failed = selection.at("rerun_failed").get<std::string>();
}

std::set<std::pair<std::string, std::string>> failed_pairs(const ResultFile& file, const std::string& name) {
  std::set<std::pair<std::string, std::string>> pairs(file.interrupted.begin(), file.interrupted.end());
  for (const Verdict& row : file.rows)
    if (!is_allowed(row.status)) pairs.emplace(row.subject, row.case_id);
  if (pairs.empty()) throw InputError("--rerun-failed " + name, "nothing failed there, so there is nothing to run");
  return pairs;
}

}  // namespace assay
