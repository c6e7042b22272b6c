// assay bench: the fast path's kernels, each gated by the reference and then timed at the shapes of
// runners/bench/shapes.json, on request beside public implementations; and its models, gated by their cases.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "cases/spec/case.hpp"
#include "cases/spec/error.hpp"
#include "cases/spec/json.hpp"
#include "runners/bench/measure.hpp"
#include "runners/bench/model_row.hpp"
#include "runners/bench/peers.hpp"
#include "runners/bench/run_models.hpp"
#include "runners/commands/commands.hpp"
#include "runners/results.hpp"
#include "runners/subjects.hpp"

namespace assay {

namespace {

struct Options {
  std::vector<std::string> names;
  std::string subject = "fast";
  std::string json_file;
  int repetitions = 50;
  bool has_peers = false;
  std::string peers_python;
  double peers_timeout_s = 300;
};

// Refused before the first row is timed. Only a regular file is written: another kind would be replaced by one.
void check_json_file(const std::string& name) {
  const std::filesystem::path file = std::filesystem::absolute(name);
  std::error_code ignored;
  if (std::filesystem::exists(file, ignored) && !std::filesystem::is_regular_file(file, ignored))
    throw InputError("--json", "'" + name + "' is not a regular file", "name the file to write, e.g. out/bench.jsonl");
  check_writable(file.parent_path(), "--json");
}

// The rows of --json: the file is whole after each.
class Lines {
 public:
  explicit Lines(std::string file) : file_(std::move(file)) {}
  void add(const nlohmann::json& row) {
    text_ += row.dump() + "\n";
    if (!file_.empty()) write_file(file_, text_);
  }

 private:
  std::string file_, text_;
};

// Null unless they are asked for. Without a Python each row says why it has none.
std::unique_ptr<bench::Peers> open_peers(const Options& options, const std::string& device,
                                         const Invocation& invocation) {
  if (!options.has_peers) return nullptr;
  bench::PeerSettings settings{.device = device, .timeout_s = options.peers_timeout_s};
  settings.progress = [](const std::string& text) {
    if (::isatty(STDERR_FILENO)) fmt::print(stderr, "# {}\n", text);
  };
  try {
    settings.command = bench::peers_command(invocation.root(), options.peers_python);
  } catch (const HarnessError& error) {
    settings.unusable = error.what();
  }
  return std::make_unique<bench::Peers>(std::move(settings));
}

// Null, and the reason printed, where it cannot be used here.
std::unique_ptr<Subject> open_for_bench(const std::string& name, const char* why, const Invocation& invocation) {
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

// Returns how many rows failed; none where the subject or its gate cannot be used here.
std::optional<int64_t> run_kernels(const std::vector<const bench::Row*>& rows, const bench::Table& table,
                                   const bench::PeerTable& named, const Options& options, Lines& json,
                                   const Invocation& invocation) {
  const auto subject = open_for_bench(options.subject, "its kernels are what is timed", invocation);
  if (!subject) return std::nullopt;
  const auto reference = open_for_bench("reference", "no time is shown without its gate", invocation);
  if (!reference) return std::nullopt;
  for (const std::string& line : bench::header_lines(subject->capabilities(), table, options.repetitions))
    fmt::print("{}\n", line);
  const auto peers = open_peers(options, subject->capabilities().device, invocation);
  int64_t failed = 0;
  std::chrono::duration<double> whole{}, longest{};
  std::string longest_row;
  for (const bench::Row* row : rows) {
    const auto begin = std::chrono::steady_clock::now();
    const bench::Measured measured = measured_row(*row, table, *subject, *reference, options.repetitions);
    if (!measured.gate.passed) ++failed;
    for (const std::string& line : bench::lines(measured)) fmt::print("{}\n", line);
    std::fflush(stdout);
    nlohmann::json document = bench::to_json(measured, subject->capabilities());
    if (peers) {
      const auto times = peers->measure(*row, named.at(row->id), options.repetitions);
      for (const std::string& line : bench::peer_lines(measured, times)) fmt::print("{}\n", line);
      document["peers"] = bench::to_json(measured, times);
    }
    json.add(document);
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
    whole += spent;
    if (spent > longest) longest = spent, longest_row = row->id;
  }
  fmt::print("# {} rows in {:.0f} s, gates and drawing included; {:.1f} s of them for {}\n", rows.size(), whole.count(),
             longest.count(), longest_row);
  return failed;
}

int run_bench(const Options& options, const Invocation& invocation) {
  const bench::Table table = bench::read_table(invocation.root());
  std::vector<std::string> kernels;
  const std::vector<std::string> models = bench::named_models(options.names, kernels);
  std::vector<const bench::Row*> rows;
  if (models.empty() || !kernels.empty()) rows = bench::choose(table, kernels);
  const bench::PeerTable named = options.has_peers ? bench::read_peers(invocation.root(), table) : bench::PeerTable();
  if (!options.json_file.empty()) check_json_file(options.json_file);
  Lines json(options.json_file);
  int64_t failed = 0;
  if (!rows.empty()) {
    const std::optional<int64_t> without = run_kernels(rows, table, named, options, json, invocation);
    if (!without) return kExitSkipped;
    failed += *without;
  }
  if (!models.empty()) {
    if (options.has_peers) fmt::print("# models have no peers here\n");
    const auto subject = open_for_bench(options.subject, "its models are what is timed", invocation);
    if (!subject) return kExitSkipped;
    const Corpus corpus = read_corpus(invocation.root());
    failed += bench::run_models(models, {.subject = *subject,
                                         .corpus = corpus,
                                         .table = table,
                                         .repetitions = options.repetitions,
                                         .after_row = [&json](const nlohmann::json& row) { json.add(row); }});
  }
  if (failed > 0)
    fmt::print("{} of {} rows failed their gate and have no time\n", failed,
               rows.size() + models.size() * bench::model_calls().size());
  return failed > 0 ? kExitVerdict : kExitAllowed;
}

}  // namespace

void add_bench(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      new_command(app, "bench", "Check the fast path's kernels and models at large shapes, then time them",
                  "  assay bench                          every row of runners/bench/shapes.json\n"
                  "  assay bench ssd 'selective_scan.1x*' rows of an op, or a glob over row names\n"
                  "  assay bench mamba2 qwen3_next        prompts and steps of models at released width, few layers\n"
                  "  assay bench 'model:*'                of every model; minutes\n"
                  "  assay bench mamba2 --subject reference   of another subject, or of a library of yours\n"
                  "  assay bench --json out/bench.jsonl   also as JSON, one row a line\n"
                  "  assay bench --peers ssd              beside public implementations, on the same GPU\n");
  command->add_option("name", options->names, "Op, row name, glob, or model (default: every kernel)")
      ->type_name("NAME");
  command
      ->add_option("--subject", options->subject,
                   "Whose kernels and models: a subject's name, or the path of its library")
      ->type_name("NAME|FILE")
      ->capture_default_str();
  command
      ->add_option("--json", options->json_file,
                   "Write the rows here (schemas runners/schema/bench.schema.json, bench_model.schema.json)")
      ->type_name("FILE")
      ->check([](const std::string& file) { return file.empty() ? "is empty: name the file to write" : ""; });
  command->add_option("--repetitions", options->repetitions, "Timed launches a row")
      ->type_name("N")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  CLI::Option* peers = command->add_flag("--peers", options->has_peers,
                                         "Time the public implementations of runners/bench/peers.json beside each row");
  command
      ->add_option("--peers-python", options->peers_python,
                   "Interpreter with torch and the peers (default: ASSAY_ORIGINALS_PYTHON, .env-originals)")
      ->type_name("FILE")
      ->needs(peers);
  command->add_option("--peers-timeout", options->peers_timeout_s, "Seconds of silence after which a peer is given up")
      ->type_name("SECONDS")
      ->needs(peers)
      ->check(CLI::Range(1, 604800))
      ->capture_default_str();
  command->callback([options, &invocation] {
    invocation.action = [options, &invocation] { return run_bench(*options, invocation); };
  });
}

}  // namespace assay
