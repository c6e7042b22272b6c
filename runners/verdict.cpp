#include "runners/verdict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "cases/spec/error.hpp"
#include "golden/signature.hpp"

namespace assay {

using nlohmann::json;

namespace {

constexpr std::pair<Status, std::string_view> kStatuses[] = {
    {Status::kPass, "PASS"},      {Status::kMarginal, "MARGINAL"},
    {Status::kFail, "FAIL"},      {Status::kError, "ERROR"},
    {Status::kCrash, "CRASH"},    {Status::kTimeout, "TIMEOUT"},
    {Status::kOom, "OOM"},        {Status::kFallback, "FALLBACK"},
    {Status::kHollow, "HOLLOW"},  {Status::kNoGolden, "NO_GOLDEN"},
    {Status::kStale, "STALE"},    {Status::kMissing, "MISSING"},
    {Status::kSkip, "SKIP"},      {Status::kWaived, "WAIVED"},
    {Status::kFlaky, "FLAKY"},    {Status::kUnexpectedPass, "UNEXPECTED_PASS"},
    {Status::kNotRun, "NOT_RUN"},
};

constexpr std::pair<SkipReason, std::string_view> kSkips[] = {
    {SkipReason::kNoGpu, "no_gpu"},   {SkipReason::kNotBuilt, "not_built"},
    {SkipReason::kNoForm, "no_form"}, {SkipReason::kNoModel, "no_model"},
    {SkipReason::kMemory, "memory"},  {SkipReason::kNoCapability, "no_capability"},
};

json number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return value;
}

double number(const json& value) {
  if (value.is_number()) return value.get<double>();
  const std::string text = value.get<std::string>();
  if (text == "Infinity") return std::numeric_limits<double>::infinity();
  if (text == "-Infinity") return -std::numeric_limits<double>::infinity();
  return std::numeric_limits<double>::quiet_NaN();
}

json to_json(const golden::Finding& finding, const std::string& leg) {
  json index = json::array({finding.row});
  if (finding.position >= 0) index.push_back(finding.position);
  for (const int64_t coordinate : finding.index) index.push_back(coordinate);
  return {{"probe", finding.probe},
          {"layer", finding.layer},
          {"leg", leg},
          {"step", finding.step},
          {"row", finding.row},
          {"position", finding.position},
          {"index", index},
          {"expected", number(finding.expected)},
          {"got", number(finding.got)},
          {"bound", number(finding.bound)},
          {"bad", finding.bad},
          {"of", finding.of},
          {"what", finding.what},
          {"detail", finding.detail}};
}

golden::Finding finding_from_json(const json& first) {
  golden::Finding finding;
  finding.probe = first.at("probe").get<std::string>();
  finding.layer = first.at("layer").get<int64_t>();
  finding.step = first.at("step").get<int64_t>();
  finding.row = first.at("row").get<int64_t>();
  finding.position = first.at("position").get<int64_t>();
  const size_t outer = finding.position >= 0 ? 2 : 1;
  const json& index = first.at("index");
  for (size_t i = outer; i < index.size(); ++i) finding.index.push_back(index[i].get<int64_t>());
  finding.expected = number(first.at("expected"));
  finding.got = number(first.at("got"));
  finding.bound = number(first.at("bound"));
  finding.bad = first.at("bad").get<int64_t>();
  finding.of = first.at("of").get<int64_t>();
  finding.what = first.at("what").get<std::string>();
  finding.detail = first.at("detail").get<std::string>();
  return finding;
}

}  // namespace

std::string_view status_name(Status status) {
  for (const auto& [known, name] : kStatuses)
    if (known == status) return name;
  return "?";
}

Status status_from_name(std::string_view name) {
  for (const auto& [status, known] : kStatuses)
    if (known == name) return status;
  throw InputError("status", fmt::format("unknown status '{}'", name));
}

bool is_allowed(Status status) {
  return status == Status::kPass || status == Status::kMarginal || status == Status::kSkip || status == Status::kWaived;
}

std::string_view skip_name(SkipReason reason) {
  for (const auto& [known, name] : kSkips)
    if (known == reason) return name;
  return "?";
}

SkipReason skip_from_name(std::string_view name) {
  for (const auto& [reason, known] : kSkips)
    if (known == name) return reason;
  throw InputError("skip", fmt::format("unknown reason '{}'", name));
}

std::string signature_of(const Verdict& verdict) {
  std::string text(status_name(verdict.status));
  if (is_allowed(verdict.status)) return text;
  if (!verdict.first)
    return verdict.reason.empty() ? text : text + ":" + verdict.reason.substr(0, verdict.reason.find('\n'));
  return golden::signature(text, *verdict.first);
}

json to_json(const Verdict& v) {
  json row = {{"subject", v.subject},
              {"case", v.case_id},
              {"model", v.model},
              {"config", v.config},
              {"aspect", v.aspect},
              {"tier", v.tier},
              {"dtype", v.dtype},
              {"device", v.device},
              {"status", status_name(v.status)},
              {"reason", v.reason},
              {"seconds", v.seconds},
              {"used", number(v.used)},
              {"used_by", v.used_by},
              {"probes", v.probes},
              {"elements", v.elements},
              {"signature", v.signature},
              {"notes", v.notes},
              {"kernels", v.kernels},
              {"case_digest", v.case_digest},
              {"golden_digests", v.golden_digests},
              {"outputs", v.outputs},
              {"repeats", v.repeats},
              {"repeat", v.repeat}};
  if (v.skip) row["skip"] = skip_name(*v.skip);
  if (v.first) row["first"] = to_json(*v.first, v.leg);
  return row;
}

Verdict verdict_from_json(const json& row) {
  Verdict v;
  const auto text = [&row](const char* key) { return row.at(key).get<std::string>(); };
  const auto texts = [&row](const char* key) { return row.at(key).get<std::vector<std::string>>(); };
  v.subject = text("subject");
  v.case_id = text("case");
  v.model = text("model");
  v.config = text("config");
  v.aspect = text("aspect");
  v.tier = text("tier");
  v.dtype = text("dtype");
  v.device = text("device");
  v.status = status_from_name(text("status"));
  v.reason = text("reason");
  v.seconds = row.at("seconds").get<double>();
  v.used = number(row.at("used"));
  v.used_by = text("used_by");
  v.probes = row.at("probes").get<int64_t>();
  v.elements = row.at("elements").get<int64_t>();
  v.signature = text("signature");
  v.notes = texts("notes");
  v.kernels = texts("kernels");
  v.case_digest = text("case_digest");
  v.golden_digests = texts("golden_digests");
  v.outputs = text("outputs");
  v.repeats = row.at("repeats").get<int64_t>();
  v.repeat = text("repeat");
  if (row.contains("skip")) v.skip = skip_from_name(text("skip"));
  if (row.contains("first")) {
    v.first = finding_from_json(row.at("first"));
    v.leg = row.at("first").at("leg").get<std::string>();
  }
  return v;
}

Verdict combine(const std::vector<Verdict>& repetitions) {
  Verdict result = *std::max_element(repetitions.begin(), repetitions.end(), [](const Verdict& a, const Verdict& b) {
    return std::make_pair(!is_allowed(a.status), a.used) < std::make_pair(!is_allowed(b.status), b.used);
  });
  std::map<Status, int> counts;
  double least_used = result.used;
  std::set<std::string> outputs;
  result.seconds = 0;
  for (const Verdict& v : repetitions) {
    ++counts[v.status];
    least_used = std::min(least_used, v.used);
    outputs.insert(v.outputs);
    result.seconds += v.seconds;
  }
  result.repeats = static_cast<int64_t>(repetitions.size());
  // PASS and MARGINAL differ by one threshold; that is drift of the last digits, noted below, not a flake.
  const bool all_pass = std::all_of(counts.begin(), counts.end(), [](const auto& entry) {
    return entry.first == Status::kPass || entry.first == Status::kMarginal;
  });
  if (counts.size() > 1 && !all_pass) {
    std::string seen;
    for (const auto& [status, count] : counts)
      seen += fmt::format("{}{} {}", seen.empty() ? "" : ", ", count, status_name(status));
    result.reason = seen + (result.reason.empty() ? "" : "; " + result.reason);
    result.status = Status::kFlaky;
    result.signature = signature_of(result);
  } else if (outputs.size() > 1) {
    result.notes.push_back(
        fmt::format("repetitions are not equal bit for bit: {} outputs in {} runs, used {:.3g} to {:.3g}",
                    outputs.size(), repetitions.size(), least_used, result.used));
  }
  return result;
}

}  // namespace assay
