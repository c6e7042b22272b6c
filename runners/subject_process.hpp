// SubjectProcess: a subject in worker processes, one after another, as the parent of a run sees it.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cases/spec/case.hpp"
#include "runners/process.hpp"
#include "runners/subjects.hpp"
#include "runners/verdict.hpp"

namespace assay {

struct SubjectSettings {
  std::filesystem::path executable, root, dump, logs;
  double timeout_s = 300;  // of opening a subject, and of a case with all its repetitions
};

// The run was stopped (Interrupts) while this waited.
struct Interrupted {};

class SubjectProcess {
 public:
  SubjectProcess(const std::string& argument, const SubjectSettings& settings, Interrupts& interrupts);

  // Starts the first worker and waits for it to open the subject: capabilities() or unavailable() afterwards.
  // InputError when it is no subject, or dies of being opened; HarnessError when it takes too long.
  void open();

  // The same subject for the cases of one model, beside this one: with its log in a file of its own, and with the
  // worker that open() started if nobody has it yet. Call it from the thread of open().
  std::unique_ptr<SubjectProcess> beside(const std::string& model);

  const std::string& argument() const { return place_.name; }  // as --subject says it
  // name, device, versions, models and is_accelerated only
  const Capabilities& capabilities() const { return capabilities_; }
  const std::optional<Unavailable>& unavailable() const { return unavailable_; }

  // Runs one case, so many times, in the worker that ran the last one, or in another after a crash. Rows that tell how
  // a worker ended (CRASH, TIMEOUT) come from here. Throws Interrupted, or HarnessError when a worker cannot go on.
  // config: the file of the case's config; empty for an op case.
  Verdict run(const Case& test_case, const std::filesystem::path& config, int64_t repetitions);

 private:
  // How a start can fail; nothing if the worker is ready.
  struct Failure {
    Status status;
    std::string reason;
  };
  std::optional<Failure> start();
  Verdict run_once(const Case& test_case, const std::filesystem::path& config, double& left_s);

  SubjectPlace place_;
  SubjectSettings settings_;
  Interrupts& interrupts_;
  Capabilities capabilities_;
  std::optional<Unavailable> unavailable_;
  std::filesystem::path log_;
  std::unique_ptr<ChildProcess> child_;
  int scratch_cases_ = 0;     // that ended for want of a temporary folder, one after another
  std::string scratch_case_;  // the last of them
};

}  // namespace assay
