#include "runners/subject_process.hpp"

#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <system_error>

#include "cases/spec/error.hpp"
#include "runners/execute.hpp"

namespace assay {

using nlohmann::json;

namespace {

constexpr size_t kLogLines = 12;
// So many cases one after another without a temporary folder: the machine is at fault, and stays so.
constexpr int kMostScratchCases = 3;

HarnessError harness_error(const json& row) {
  return {row.at("where").get<std::string>(), row.at("what").get<std::string>(), row.at("advice").get<std::string>()};
}

std::string with_log(std::string text, const std::filesystem::path& log) {
  if (const std::string lines = last_lines(log, kLogLines); !lines.empty()) text += "; its last output:\n" + lines;
  return text;
}

std::string file_stem(std::string name) {
  for (char& c : name)
    if (c == '/' || c == '.') c = '_';
  return name;
}

}  // namespace

SubjectProcess::SubjectProcess(const std::string& argument, const SubjectSettings& settings, Interrupts& interrupts)
    : place_(find_subject(argument, settings.executable)), settings_(settings), interrupts_(interrupts) {
  capabilities_.name = place_.name;
  log_ = settings_.logs / (file_stem(place_.name) + ".log");
  unavailable_ = missing_library(place_);
}

std::optional<SubjectProcess::Failure> SubjectProcess::start() {
  std::error_code ignored;
  std::filesystem::remove(log_, ignored);
  std::vector<std::string> arguments{settings_.executable.string(),
                                     "worker",
                                     "--subject",
                                     place_.is_built_in ? place_.name : place_.library.string(),
                                     "--root",
                                     settings_.root.string()};
  if (!settings_.dump.empty()) arguments.insert(arguments.end(), {"--dump", settings_.dump.string()});
  child_ = std::make_unique<ChildProcess>(arguments, log_);
  const ChildProcess::Answer answer = child_->receive(settings_.timeout_s, interrupts_);
  if (answer.event != ChildProcess::Event::kLine) child_.reset();
  switch (answer.event) {
    case ChildProcess::Event::kStopped:
      throw Interrupted();
    case ChildProcess::Event::kTimeout:
      return Failure{Status::kTimeout,
                     with_log(fmt::format("opening it took more than {} s", settings_.timeout_s), log_)};
    case ChildProcess::Event::kEnded:
      return Failure{Status::kCrash,
                     with_log(fmt::format("its process ended ({}) while it was opened", answer.how), log_)};
    case ChildProcess::Event::kLine:
      break;
  }
  const json ready = json::parse(answer.line);
  const std::string kind = ready.at("kind").get<std::string>();
  if (kind != "ready") child_.reset();
  if (kind == "refused") return Failure{Status::kError, ready.at("text").get<std::string>()};
  if (kind == "unavailable") {
    unavailable_ =
        Unavailable{skip_from_name(ready.at("reason").get<std::string>()), ready.at("text").get<std::string>()};
    return std::nullopt;
  }
  capabilities_.name = ready.at("name").get<std::string>();
  capabilities_.device = ready.at("device").get<std::string>();
  capabilities_.versions = ready.at("versions").get<std::vector<std::string>>();
  capabilities_.models = ready.at("models").get<std::vector<std::string>>();
  capabilities_.is_accelerated = ready.at("is_accelerated").get<bool>();
  return std::nullopt;
}

void SubjectProcess::open() {
  if (unavailable_) return;
  const std::optional<Failure> failure = start();
  if (!failure) return;
  const std::string where = "subject " + place_.name;
  if (failure->status == Status::kTimeout)
    throw HarnessError(where, failure->reason, "give it more with --timeout SECONDS");
  if (failure->status == Status::kCrash) throw InputError(where, failure->reason);
  throw InputError("", failure->reason);  // says where itself
}

std::unique_ptr<SubjectProcess> SubjectProcess::beside(const std::string& model) {
  auto other = std::make_unique<SubjectProcess>(place_.name, settings_, interrupts_);
  other->capabilities_ = capabilities_;
  other->unavailable_ = unavailable_;
  other->child_ = std::move(child_);
  if (!other->child_) other->log_ = settings_.logs / (file_stem(place_.name) + "." + model + ".log");
  return other;
}

Verdict SubjectProcess::run(const Case& test_case, const std::filesystem::path& config, int64_t repetitions) {
  double left_s = settings_.timeout_s;
  std::vector<Verdict> verdicts;
  while (static_cast<int64_t>(verdicts.size()) < repetitions) {
    Verdict verdict = run_once(test_case, config, left_s);
    if (verdict.status == Status::kTimeout) {
      // The time that ran out was that of all repetitions: the earlier ones do not make this one FLAKY.
      if (repetitions > 1)
        verdict.reason = fmt::format("repetition {} of {}: {}", verdicts.size() + 1, repetitions, verdict.reason);
      return verdict;
    }
    verdicts.push_back(std::move(verdict));
  }
  return repetitions == 1 ? verdicts[0] : combine(verdicts);
}

Verdict SubjectProcess::run_once(const Case& test_case, const std::filesystem::path& config, double& left_s) {
  Verdict verdict = blank_verdict(test_case, capabilities_);
  const auto ends_as = [&verdict](Status status, const std::string& reason) {
    verdict.status = status;
    verdict.reason = reason;
    verdict.signature = signature_of(verdict);
    return verdict;
  };
  if (!unavailable_ && !child_)
    if (const auto failure = start()) return ends_as(failure->status, failure->reason);
  if (unavailable_) {
    verdict.skip = unavailable_->reason;
    return ends_as(Status::kSkip, unavailable_->text);
  }
  const auto begin = std::chrono::steady_clock::now();
  child_->send(json({{"case", test_case.file.string()}, {"config", config.string()}}).dump());
  const ChildProcess::Answer answer = child_->receive(left_s, interrupts_);
  verdict.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  left_s -= verdict.seconds;
  if (answer.event == ChildProcess::Event::kLine) {
    const json row = json::parse(answer.line);
    if (row.at("kind") == "broken") throw harness_error(row);
    scratch_cases_ = !row.contains("scratch") ? 0 : scratch_cases_ + (test_case.id != scratch_case_);
    if (row.contains("scratch")) scratch_case_ = test_case.id;
    if (scratch_cases_ == kMostScratchCases) throw harness_error(row.at("scratch"));
    return verdict_from_json(row);
  }
  child_.reset();  // the next case starts another
  if (answer.event == ChildProcess::Event::kStopped) throw Interrupted();
  if (answer.event == ChildProcess::Event::kTimeout)
    return ends_as(Status::kTimeout, with_log(fmt::format("no answer within {} s", settings_.timeout_s), log_));
  return ends_as(Status::kCrash, with_log(answer.how, log_));
}

}  // namespace assay
