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

void SubjectProcess::start() {
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
  model_.clear();
  const ChildProcess::Answer answer = child_->receive(settings_.timeout_s, interrupts_);
  const std::string where = "subject " + place_.name;
  switch (answer.event) {
    case ChildProcess::Event::kSignal:
      throw Interrupted{answer.signal};
    case ChildProcess::Event::kTimeout:
      throw InputError(where, fmt::format("opening it took more than {} s", settings_.timeout_s), "see --timeout");
    case ChildProcess::Event::kEnded:
      throw InputError(where, with_log(fmt::format("its process ended ({}) while it was opened", answer.how), log_));
    case ChildProcess::Event::kLine:
      break;
  }
  const json ready = json::parse(answer.line);
  const std::string kind = ready.at("kind").get<std::string>();
  if (kind == "refused") throw InputError("", ready.at("text").get<std::string>());
  if (kind == "unavailable") {
    unavailable_ =
        Unavailable{skip_from_name(ready.at("reason").get<std::string>()), ready.at("text").get<std::string>()};
    child_.reset();
    return;
  }
  capabilities_.name = ready.at("name").get<std::string>();
  capabilities_.device = ready.at("device").get<std::string>();
  capabilities_.versions = ready.at("versions").get<std::vector<std::string>>();
  capabilities_.models = ready.at("models").get<std::vector<std::string>>();
}

void SubjectProcess::open() {
  if (!unavailable_) start();
}

Verdict SubjectProcess::run(const Case& test_case, const std::filesystem::path& config) {
  Verdict verdict = blank_verdict(test_case, capabilities_);
  if (unavailable_) {
    verdict.status = Status::kSkip;
    verdict.skip = unavailable_->reason;
    verdict.reason = unavailable_->text;
    verdict.signature = signature_of(verdict);
    return verdict;
  }
  if (!child_ || (!model_.empty() && model_ != test_case.model)) start();
  model_ = test_case.model;
  const auto begin = std::chrono::steady_clock::now();
  child_->send(json({{"case", test_case.file.string()}, {"config", config.string()}}).dump());
  const ChildProcess::Answer answer = child_->receive(settings_.timeout_s, interrupts_);
  switch (answer.event) {
    case ChildProcess::Event::kSignal:
      throw Interrupted{answer.signal};
    case ChildProcess::Event::kLine: {
      const json row = json::parse(answer.line);
      if (row.at("kind") == "broken")
        throw HarnessError(row.at("where").get<std::string>(), row.at("what").get<std::string>(),
                           row.at("advice").get<std::string>());
      return verdict_from_json(row);
    }
    case ChildProcess::Event::kTimeout:
      verdict.status = Status::kTimeout;
      verdict.reason = with_log(fmt::format("no answer within {} s", settings_.timeout_s), log_);
      break;
    case ChildProcess::Event::kEnded:
      verdict.status = Status::kCrash;
      verdict.reason = with_log(answer.how, log_);
      break;
  }
  child_.reset();  // the next case starts another
  verdict.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  verdict.signature = signature_of(verdict);
  return verdict;
}

}  // namespace assay
