#include "runners/run_cases.hpp"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <thread>

#include "cases/spec/error.hpp"
#include "runners/execute.hpp"
#include "runners/subject_process.hpp"

namespace assay {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

using Pair = std::pair<std::string, std::string>;  // (subject, case)

// The subject arguments that opened the subjects of an earlier run, for the names that its rows carry.
std::vector<std::string> arguments_of(const json& run, const std::set<Pair>& pairs) {
  std::vector<std::string> arguments;
  for (const json& subject : run.at("subjects")) {
    const std::string name = subject.at("name").get<std::string>();
    if (std::any_of(pairs.begin(), pairs.end(), [&name](const Pair& pair) { return pair.first == name; }))
      arguments.push_back(subject.at("argument").get<std::string>());
  }
  return arguments;
}

std::string now_text() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

std::string host_text() {
  utsname name{};
  return uname(&name) == 0 ? fmt::format("{} {} {}", name.nodename, name.sysname, name.machine) : "";
}

std::vector<Status> statuses(const std::vector<std::string>& names) {
  std::vector<Status> result;
  for (std::string name : names) {
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    result.push_back(status_from_name(name));
  }
  return result;
}

class Run {
 public:
  Run(RunRequest request, const Invocation& invocation, Console console)
      : request_(std::move(request)), invocation_(invocation), console_(console), root_(invocation.root()) {}

  int run() {
    not_allowed_ = statuses(request_.fail_on);
    read_earlier();
    corpus_ = read_corpus(root_);
    selection_ = select(request_, corpus_);
    check_writable(request_.out, "--out");
    if (!request_.dump.empty()) check_writable(request_.dump, "--dump");
    Interrupts interrupts;
    try {
      open_subjects(interrupts);
      make_tasks();
      return run_tasks();
    } catch (const Interrupted& end) {
      return interrupted(end.signal);
    }
  }

 private:
  struct Task {
    SubjectProcess* subject;
    const Case* test_case;
  };

  void read_earlier() {
    if (request_.resume) {
      const fs::path file = fs::path(request_.out) / kResultsName;
      earlier_ = read_results(file);
      if (request_.selectors.empty() && request_.cases.empty())
        restore_selection(request_, earlier_->run.at("selection"));
    }
    if (request_.rerun_failed.empty()) return;
    const ResultFile file = read_results(request_.rerun_failed);
    only_ = failed_pairs(file, request_.rerun_failed);
    if (request_.subjects.empty()) request_.subjects = arguments_of(file.run, only_);
    if (request_.selectors.empty() && request_.cases.empty())
      for (const Pair& pair : only_)
        if (std::count(request_.cases.begin(), request_.cases.end(), pair.second) == 0)
          request_.cases.push_back(pair.second);
  }

  void open_subjects(Interrupts& interrupts) {
    SubjectSettings settings;
    settings.executable = invocation_.executable;
    settings.root = root_;
    settings.logs = request_.out;
    if (!request_.dump.empty()) settings.dump = fs::absolute(request_.dump);
    settings.timeout_s = request_.timeout_s;
    const bool is_default = request_.subjects.empty();
    std::vector<std::string> arguments = request_.subjects;
    if (is_default) arguments.assign(std::begin(kBuiltInSubjects), std::end(kBuiltInSubjects));
    std::set<std::string> names;
    for (const std::string& argument : arguments) {
      auto subject = std::make_unique<SubjectProcess>(argument, settings, interrupts);
      subject->open();
      if (is_default && subject->unavailable()) {
        left_out_.push_back(subject->unavailable()->text);
        continue;
      }
      if (!names.insert(subject->capabilities().name).second)
        throw InputError("--subject", fmt::format("two subjects are named '{}'", subject->capabilities().name));
      subjects_.push_back(std::move(subject));
    }
    if (subjects_.empty())
      throw InputError("run", fmt::format("no subject can be used here: {}", fmt::join(left_out_, "; ")));
  }

  // Rows of an earlier run stay where the case is still the same; what was interrupted runs again.
  void make_tasks() {
    std::map<Pair, const Verdict*> kept;
    if (earlier_) {
      const std::string commit = earlier_->run.at("commit").get<std::string>();
      if (commit != commit_)
        throw InputError("--resume", fmt::format("the run was of commit {}, this is {}", commit, commit_),
                         "run it again without --resume");
      for (const Verdict& row : earlier_->rows)
        if (row.status != Status::kNotRun) kept[{row.subject, row.case_id}] = &row;
    }
    for (const auto& subject : subjects_)
      for (const Case* test_case : selection_.cases) {
        const Pair pair{subject->capabilities().name, test_case->id};
        if (!only_.empty() && !only_.contains(pair)) continue;
        ++selected_;
        if (const auto row = kept.find(pair); row != kept.end() && row->second->case_digest == test_case->digest)
          rows_.push_back(*row->second);
        else
          tasks_.push_back({subject.get(), test_case});
      }
    if (selected_ == 0) throw InputError("run", "none of the selected cases is one that failed on these subjects");
  }

  json run_line() const {
    json subjects = json::array();
    std::vector<std::string> devices, versions{std::string("assay ") + ASSAY_VERSION};
    for (const auto& subject : subjects_) {
      const Capabilities& capabilities = subject->capabilities();
      json entry = {{"name", capabilities.name},
                    {"argument", subject->argument()},
                    {"device", capabilities.device},
                    {"versions", capabilities.versions}};
      if (subject->unavailable()) {
        entry["unavailable"] = skip_name(subject->unavailable()->reason);
        entry["text"] = subject->unavailable()->text;
      }
      subjects.push_back(entry);
      if (!capabilities.device.empty()) devices.push_back(capabilities.device);
      for (const std::string& version : capabilities.versions)
        if (std::count(versions.begin(), versions.end(), version) == 0) versions.push_back(version);
    }
    return {{"kind", "run"},
            {"schema", kResultSchema},
            {"commit", commit_},
            {"versions", versions},
            {"host", host_text()},
            {"devices", devices},
            {"threads", std::thread::hardware_concurrency()},
            {"subjects", subjects},
            {"left_out", left_out_},
            {"selection", selection_json(request_, static_cast<int64_t>(selection_.cases.size()))},
            {"arguments", invocation_.arguments},
            {"time", now_text()},
            {"resumed", request_.resume}};
  }

  void print_header() {
    std::vector<SubjectLine> lines;
    std::vector<std::string> names, cases;
    for (const auto& subject : subjects_) {
      const Capabilities& capabilities = subject->capabilities();
      names.push_back(capabilities.name);
      lines.push_back(
          {capabilities.name, subject->unavailable() ? "not available" : capabilities.device, capabilities.versions});
    }
    for (const Case* test_case : selection_.cases) cases.push_back(test_case->id);
    console_.set_widths(names, cases);
    console_.header(lines, static_cast<int64_t>(selection_.cases.size()));
    for (const std::string& text : left_out_) console_.say("left out: " + text);
    if (selection_.left_out_by_tier > 0)
      console_.say(fmt::format("left out: {} cases of a higher tier (--tier slow)", selection_.left_out_by_tier));
    if (!rows_.empty()) console_.say(fmt::format("resumed: {} rows are kept from the earlier run", rows_.size()));
  }

  int run_tasks() {
    writer_ = std::make_unique<ResultWriter>(request_.out, run_line(), rows_);
    print_header();
    for (const Task& task : tasks_) {
      if (running_ && running_->subject != task.subject) running_->subject->close();
      running_ = task;
      const std::string& name = task.subject->capabilities().name;
      console_.progress(name, task.test_case->id, static_cast<int64_t>(rows_.size()), selected_);
      writer_->start(name, task.test_case->id);
      Verdict verdict;
      try {
        verdict = repeated(task);
      } catch (const HarnessError& error) {
        finish(false, error.what());
        throw;
      }
      record(verdict);
    }
    running_.reset();
    finish(true, "");
    return exit_code(rows_, not_allowed_, true);
  }

  Verdict repeated(const Task& task) {
    std::vector<Verdict> repetitions;
    const fs::path config = task.test_case->is_op_case() ? fs::path() : corpus_.config_of(*task.test_case).file;
    for (int64_t i = 0; i < request_.repeat; ++i) repetitions.push_back(task.subject->run(*task.test_case, config));
    return request_.repeat == 1 ? repetitions[0] : combine(repetitions);
  }

  void record(Verdict verdict) {
    verdict.repeat = repeat_line(*running_);
    writer_->result(verdict);
    console_.row(verdict);
    rows_.push_back(std::move(verdict));
  }

  std::string repeat_line(const Task& task) const {
    std::string line = fmt::format("assay run --subject {} --case {}", shell_quoted(task.subject->argument()),
                                   shell_quoted(task.test_case->id));
    if (invocation_.root_is_chosen()) line += " --root " + shell_quoted(root_.string());
    if (request_.repeat > 1) line += fmt::format(" --repeat {}", request_.repeat);
    if (request_.timeout_s != RunRequest().timeout_s) line += fmt::format(" --timeout {}", request_.timeout_s);
    return line;
  }

  void finish(bool complete, const std::string& reason) {
    for (const auto& subject : subjects_) subject->close();
    console_.summary(rows_, not_allowed_, (fs::path(request_.out) / kResultsName).string(),
                     complete ? "" : "not finished: " + reason);
    writer_->end(complete, reason);
  }

  int interrupted(int signal) {
    const std::string reason = "interrupted by " + signal_text(signal);
    if (!writer_) {
      console_.say(reason);
      return kExitHarness;
    }
    if (running_) {
      Verdict verdict = blank_verdict(*running_->test_case, running_->subject->capabilities());
      verdict.status = Status::kNotRun;
      verdict.reason = reason;
      verdict.signature = signature_of(verdict);
      record(verdict);
    }
    finish(false, reason);
    return kExitHarness;
  }

  RunRequest request_;
  const Invocation& invocation_;
  Console console_;
  fs::path root_;
  std::string commit_ =
      output_of({"git", "-C", root_.string(), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"});
  Corpus corpus_;
  RunSelection selection_;
  std::vector<Status> not_allowed_;
  std::optional<ResultFile> earlier_;
  std::set<Pair> only_;
  std::vector<std::unique_ptr<SubjectProcess>> subjects_;
  std::vector<std::string> left_out_;
  std::vector<Task> tasks_;
  int64_t selected_ = 0;  // (subject, case) pairs
  std::vector<Verdict> rows_;
  std::unique_ptr<ResultWriter> writer_;
  std::optional<Task> running_;
};

}  // namespace

int run_cases(RunRequest request, const Invocation& invocation, Console console) {
  return Run(std::move(request), invocation, console).run();
}

}  // namespace assay
