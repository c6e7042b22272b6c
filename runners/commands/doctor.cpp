// assay doctor: what this machine can run and what it cannot, with reasons.
#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <thread>

#include "cases/spec/error.hpp"
#include "cases/spec/select.hpp"
#include "golden/life.hpp"
#include "golden/record.hpp"
#include "runners/commands/commands.hpp"
#include "runners/subjects.hpp"

namespace assay {

namespace {

void line(const char* mark, const std::string& what, const std::string& text) {
  fmt::print("{:4} {:12} {}\n", mark, what, text);
}

// Returns whether the subject can run here.
bool examine_subject(const std::string& name, const Invocation& invocation) {
  try {
    const OpenedSubject opened = open_subject(find_subject(name, invocation.executable));
    if (opened.unavailable) {
      line("no", name, opened.unavailable->text);
      return false;
    }
    const Capabilities& can = opened.subject->capabilities();
    const bool is_failing = can.device.starts_with("failing");
    line(is_failing ? "no" : "yes", name,
         fmt::format("{} ({}); models: {}", can.device, fmt::join(can.versions, ", "), fmt::join(can.models, " ")));
    return !is_failing;
  } catch (const Error& error) {
    line("no", name, error.what());
    return false;
  }
}

int doctor(const Invocation& invocation) {
  utsname host{};
  uname(&host);
  const double memory_gib = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGE_SIZE)) /
                            (1024.0 * 1024.0 * 1024.0);
  line("", "host",
       fmt::format("{} {} {}, {} cores, {:.1f} GiB", host.sysname, host.release, host.machine,
                   std::thread::hardware_concurrency(), memory_gib));
  const bool has_reference = examine_subject("reference", invocation);
  examine_subject("fast", invocation);

  bool has_corpus = false;
  try {
    const std::filesystem::path root = invocation.root();
    const Corpus corpus = read_corpus(root);
    has_corpus = corpus.broken.empty();
    line(has_corpus ? "yes" : "no", "cases",
         fmt::format(
             "{} cases, {} op cases, {} configs in {}{}", corpus.cases.size(), corpus.op_cases.size(),
             corpus.configs.size(), root.string(),
             has_corpus ? "" : fmt::format("; {} are broken and stop what selects them:", corpus.broken.size())));
    for (const BrokenCase& broken : corpus.broken)
      line("no", "", fmt::format("{}  {}: {}", broken.id, broken.where, broken.problem));
    size_t good = 0, bad = 0;
    for (const golden::GoldenState& row : golden::state(corpus, root)) {
      if (row.standing == golden::Standing::kCommitted) {
        ++good;
      } else {
        ++bad;
      }
    }
    line(bad == 0 ? "yes" : "no", "goldens",
         bad == 0
             ? fmt::format("{} recorded, all current", good)
             : fmt::format("{} current, {} missing, stale, unreferenced or unreadable (assay golden list)", good, bad));
    try {
      line("yes", "originals", fmt::format("{}", golden::originals_python(root).string()));
    } catch (const Error& error) {
      line("no", "originals", std::string(error.what()) + " (only needed to record goldens)");
    }
  } catch (const Error& error) {
    line("no", "cases", error.what());
  }
  return has_reference && has_corpus ? kExitAllowed : kExitHarness;
}

}  // namespace

void add_doctor(CLI::App& app, Invocation& invocation) {
  CLI::App* command =
      new_command(app, "doctor", "What this machine can run and what it cannot, with reasons",
                  "  assay doctor        exit 0 when at least the reference and the cases are usable\n");
  command->callback([&invocation] { invocation.action = [&invocation] { return doctor(invocation); }; });
}

}  // namespace assay
