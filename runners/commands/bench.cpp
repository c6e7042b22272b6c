// assay bench: the fast path's kernels, each gated by the reference and then timed at the shapes of
// runners/bench/shapes.json.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>

#include "cases/spec/error.hpp"
#include "cases/spec/json.hpp"
#include "runners/bench/measure.hpp"
#include "runners/commands/commands.hpp"
#include "runners/results.hpp"
#include "runners/subjects.hpp"

namespace assay {

namespace {

struct Options {
  std::vector<std::string> kernels;
  std::string json_file;
  int repetitions = 50;
};

// Null, and the reason printed, where it cannot be used here.
std::unique_ptr<Subject> open_for_bench(const char* name, const char* why, const Invocation& invocation) {
  OpenedSubject opened = open_subject(find_subject(name, invocation.executable));
  if (opened.unavailable) fmt::print("skipped: {}; {}\n", opened.unavailable->text, why);
  return std::move(opened.subject);
}

// A shape that the subject refuses or has no memory for is a row that failed, not the end of the bench.
bench::Measured measured_row(const bench::Row& row, const bench::Table& table, Subject& subject, Subject& reference,
                             int repetitions) {
  try {
    return bench::measure(row, table, subject, reference, repetitions);
  } catch (const Error& error) {
    bench::Measured failed;
    failed.row = &row;
    failed.gate.text = error.what();
    return failed;
  }
}

int run_bench(const Options& options, const Invocation& invocation) {
  const bench::Table table = bench::read_table(invocation.root());
  const std::vector<const bench::Row*> rows = bench::choose(table, options.kernels);
  if (!options.json_file.empty())
    check_writable(std::filesystem::absolute(options.json_file).parent_path(), "--json " + options.json_file);
  const auto subject = open_for_bench("fast", "only its kernels are timed", invocation);
  if (!subject) return kExitSkipped;
  const auto reference = open_for_bench("reference", "no time is shown without its gate", invocation);
  if (!reference) return kExitSkipped;
  for (const std::string& line : bench::header_lines(subject->capabilities(), table, options.repetitions))
    fmt::print("{}\n", line);
  std::string text;
  int64_t failed = 0;
  std::chrono::duration<double> whole{}, longest{};
  std::string longest_row;
  for (const bench::Row* row : rows) {
    const auto begin = std::chrono::steady_clock::now();
    const bench::Measured measured = measured_row(*row, table, *subject, *reference, options.repetitions);
    if (!measured.gate.passed) ++failed;
    for (const std::string& line : bench::lines(measured)) fmt::print("{}\n", line);
    std::fflush(stdout);
    text += bench::to_json(measured, subject->capabilities()).dump() + "\n";
    if (!options.json_file.empty()) write_file(options.json_file, text);
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
    whole += spent;
    if (spent > longest) longest = spent, longest_row = row->id;
  }
  fmt::print("# {} rows in {:.0f} s, gates and drawing included; {:.1f} s of them for {}\n", rows.size(), whole.count(),
             longest.count(), longest_row);
  if (failed > 0) fmt::print("{} of {} kernels failed their gate and have no time\n", failed, rows.size());
  return failed > 0 ? kExitVerdict : kExitAllowed;
}

}  // namespace

void add_bench(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<Options>();
  CLI::App* command = new_command(app, "bench", "Check the fast path's kernels at large shapes, then time them",
                                  "  assay bench                          every row of runners/bench/shapes.json\n"
                                  "  assay bench ssd 'selective_scan.1x*' rows of an op, or a glob over row names\n"
                                  "  assay bench --json out/bench.jsonl   also as JSON, one row a line\n");
  command->add_option("kernel", options->kernels, "Op, row name or glob (default: all)")->type_name("KERNEL");
  command->add_option("--json", options->json_file, "Write the rows here (schema runners/schema/bench.schema.json)")
      ->type_name("FILE");
  command->add_option("--repetitions", options->repetitions, "Timed launches a row")
      ->type_name("N")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  command->callback([options, &invocation] {
    invocation.action = [options, &invocation] { return run_bench(*options, invocation); };
  });
}

}  // namespace assay
