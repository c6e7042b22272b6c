#include "runners/run_cases.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>

#include "cases/spec/error.hpp"
#include "runners/earlier_run.hpp"
#include "runners/execute.hpp"
#include "runners/group_pool.hpp"
#include "runners/run_line.hpp"

namespace assay {

namespace fs = std::filesystem;

namespace {

class Run {
 public:
  Run(RunRequest request, const Invocation& invocation, Console console)
      : request_(std::move(request)), invocation_(invocation), console_(console), root_(invocation.root()) {}

  int run() {
    check_options(request_);
    not_allowed_ = statuses_named(request_.fail_on);
    earlier_ = read_earlier(request_);
    corpus_ = read_corpus(root_);
    selection_ = select(request_, corpus_);
    check_writable(request_.out, "--out");
    if (!request_.dump.empty()) check_writable(request_.dump, "--dump");
    try {
      open_subjects();
    } catch (const Interrupted&) {
      console_.say(stop_reason());
      return kExitHarness;
    }
    return run_groups(make_groups());
  }

 private:
  void open_subjects() {
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
      auto subject = std::make_unique<SubjectProcess>(argument, settings, interrupts_);
      subject->open();
      if (is_default && subject->unavailable()) {
        left_out_.push_back(subject->unavailable()->text);
        continue;
      }
      if (const std::string& name = subject->capabilities().name; !names.insert(name).second)
        throw InputError("--subject", fmt::format("two subjects say that their name is '{}'", name),
                         "run them one at a time, each with a folder of its own (--out DIR)");
      subjects_.push_back(std::move(subject));
    }
    if (subjects_.empty())
      throw InputError("run", fmt::format("no subject can be used here: {}", fmt::join(left_out_, "; ")));
  }

  // How many groups of a subject may run at once.
  int64_t limit(const SubjectProcess& subject) const {
    if (request_.jobs > 0) return request_.jobs;
    return subject.capabilities().is_accelerated ? 1 : jobs_;
  }

  // Rows of an earlier run stay where the case is still the same; what was interrupted runs again.
  std::vector<CaseGroup> make_groups() {
    const auto kept = earlier_.kept(commit_);
    std::vector<CaseGroup> groups;
    for (const auto& subject : subjects_) {
      const std::string& name = subject->capabilities().name;
      std::string last;  // group; cases come sorted by model and, of ops, by op
      // Ops have no model in common to build: where groups run at once, each op is one.
      const auto group_of = [apart = limit(*subject) > 1](const Case& test_case) {
        return apart && test_case.is_op_case() ? test_case.model + "." + test_case.aspect : test_case.model;
      };
      for (const Case* test_case : selection_.cases) {
        if (!earlier_.only.empty() && !earlier_.only.contains({name, test_case->id})) continue;
        ++selected_;
        const auto row = kept.find({name, test_case->id});
        if (row != kept.end() && row->second->case_digest == test_case->digest) {
          rows_.push_back(*row->second);
          continue;
        }
        const std::string group = group_of(*test_case);
        if (last != group) groups.push_back({subject->beside(group), {}, limit(*subject)});
        last = group;
        groups.back().cases.push_back(test_case);
      }
    }
    if (selected_ == 0) throw InputError("run", "none of the selected cases is one that failed on these subjects");
    return groups;
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

  int run_groups(std::vector<CaseGroup> groups) {
    writer_ = std::make_unique<ResultWriter>(
        request_.out, run_line(request_, invocation_, selection_, subjects_, left_out_, jobs_, commit_), rows_);
    print_header();
    try {
      assay::run_groups(std::move(groups), jobs_, interrupts_,
                        [this](SubjectProcess& worker, const Case& test_case) { run_case(worker, test_case); });
    } catch (const Error& error) {
      finish(false, error.what());
      throw;
    }
    const bool is_complete = static_cast<int64_t>(rows_.size()) == selected_ && !interrupts_.is_stopped();
    finish(is_complete, is_complete ? "" : stop_reason());
    const int code = exit_code(rows_, not_allowed_, is_complete);
    const bool is_allowed = code == kExitAllowed || code == kExitSkipped;
    return is_allowed && !selection_.missing_cells.empty() ? kExitVerdict : code;
  }

  std::string stop_reason() const {
    return interrupts_.signal() ? "interrupted by " + signal_text(interrupts_.signal()) : "the run ended: " + failure_;
  }

  // From several threads: all that is shared is written under mutex_.
  void run_case(SubjectProcess& worker, const Case& test_case) {
    {
      const std::lock_guard lock(mutex_);
      console_.progress(worker.capabilities().name, test_case.id, static_cast<int64_t>(rows_.size()), selected_);
      writer_->start(worker.capabilities().name, test_case.id);
    }
    const fs::path config = test_case.is_op_case() ? fs::path() : corpus_.config_of(test_case).file;
    try {
      record(worker, test_case, worker.run(test_case, config, request_.repeat));
    } catch (const Interrupted&) {
      record_not_run(worker, test_case);
    } catch (const Error& error) {
      {
        const std::lock_guard lock(mutex_);
        if (failure_.empty()) failure_ = error.what();
      }
      record_not_run(worker, test_case);
      throw;
    }
  }

  void record_not_run(SubjectProcess& worker, const Case& test_case) {
    Verdict verdict = blank_verdict(test_case, worker.capabilities());
    verdict.status = Status::kNotRun;
    {
      const std::lock_guard lock(mutex_);
      verdict.reason = stop_reason();
    }
    verdict.signature = signature_of(verdict);
    record(worker, test_case, std::move(verdict));
  }

  void record(const SubjectProcess& worker, const Case& test_case, Verdict verdict) {
    verdict.repeat = repeat_line(worker, test_case);
    const std::lock_guard lock(mutex_);
    writer_->result(verdict);
    console_.row(verdict);
    rows_.push_back(std::move(verdict));
  }

  std::string repeat_line(const SubjectProcess& worker, const Case& test_case) const {
    std::string line =
        fmt::format("assay run --subject {} --case {}", shell_quoted(worker.argument()), shell_quoted(test_case.id));
    if (invocation_.root_is_chosen()) line += " --root " + shell_quoted(root_.string());
    if (request_.repeat > 1) line += fmt::format(" --repeat {}", request_.repeat);
    if (request_.timeout_s != RunRequest().timeout_s) line += fmt::format(" --timeout {}", request_.timeout_s);
    return line;
  }

  void finish(bool complete, const std::string& reason) {
    std::vector<Verdict> rows = rows_;  // in the order of subjects and cases, not as families happened to end
    std::map<std::string, size_t> rank;
    for (const auto& subject : subjects_) rank.emplace(subject->capabilities().name, rank.size());
    std::stable_sort(rows.begin(), rows.end(), [&rank](const Verdict& a, const Verdict& b) {
      return std::make_pair(rank[a.subject], a.case_id) < std::make_pair(rank[b.subject], b.case_id);
    });
    std::vector<std::string> closing;
    for (const std::string& cell : selection_.missing_cells)
      closing.push_back(fmt::format("{:<9} {}  no case asks this aspect (assay list --coverage)", "MISSING", cell));
    if (!complete) closing.push_back("not finished: " + reason);
    console_.summary(rows, not_allowed_, (fs::path(request_.out) / kResultsName).string(), closing);
    writer_->end(complete, reason);
  }

  RunRequest request_;
  const Invocation& invocation_;
  Console console_;
  fs::path root_;
  std::string commit_ = commit_of(root_);
  int64_t jobs_ = request_.jobs > 0 ? request_.jobs : std::max<int64_t>(std::thread::hardware_concurrency(), 1);
  Corpus corpus_;
  RunSelection selection_;
  std::vector<Status> not_allowed_;
  EarlierRun earlier_;
  Interrupts interrupts_;
  std::vector<std::unique_ptr<SubjectProcess>> subjects_;
  std::vector<std::string> left_out_;
  int64_t selected_ = 0;  // (subject, case) pairs

  std::mutex mutex_;  // of what follows, while groups run
  std::vector<Verdict> rows_;
  std::unique_ptr<ResultWriter> writer_;
  std::string failure_;
};

}  // namespace

int run_cases(RunRequest request, const Invocation& invocation, Console console) {
  return Run(std::move(request), invocation, console).run();
}

}  // namespace assay
