// SubjectProcess: a subject in worker processes, as the parent of a run sees it.
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
  double timeout_s = 300;
};

// A signal came to the parent.
struct Interrupted {
  int signal;
};

class SubjectProcess {
 public:
  SubjectProcess(const std::string& argument, const SubjectSettings& settings, Interrupts& interrupts);

  // Starts the first worker and waits for it to open the subject: capabilities() or unavailable() afterwards.
  // InputError when it is no subject, or dies of being opened.
  void open();

  const std::string& argument() const { return place_.name; }         // as --subject says it
  const Capabilities& capabilities() const { return capabilities_; }  // name, device, versions, models only
  const std::optional<Unavailable>& unavailable() const { return unavailable_; }

  // Runs one case: in the worker that ran the last one if the model is the same, else in another. CRASH and TIMEOUT
  // rows come from here. Throws Interrupted, or HarnessError when a worker cannot go on.
  // config: the file of the case's config; empty for an op case.
  Verdict run(const Case& test_case, const std::filesystem::path& config);

  void close() { child_.reset(); }

 private:
  void start();

  SubjectPlace place_;
  SubjectSettings settings_;
  Interrupts& interrupts_;
  Capabilities capabilities_;
  std::optional<Unavailable> unavailable_;
  std::filesystem::path log_;
  std::unique_ptr<ChildProcess> child_;
  std::string model_;  // that child_ has run
};

}  // namespace assay
