#include <memory>

#include "cases/spec/error.hpp"
#include "runners/commands/commands.hpp"
#include "runners/run_cases.hpp"

namespace assay {

namespace {

constexpr const char* kExamples =
    "  assay run mamba mamba2                           both models, on every subject that works here\n"
    "  assay run 'mamba2/cache.*' --subject reference   some cases on one subject\n"
    "  assay run '*' --subject ./libengine.so           another engine (cases/spec/subject.hpp)\n"
    "  assay run --case mamba2/cache.splits --subject fast --dump out/dump\n"
    "  assay run --rerun-failed out/latest/results.jsonl\n"
    "  assay run --resume                               go on where a run in out/latest was cut short\n"
    "\n"
    "Rows go to DIR/results.jsonl as they end (schema runners/schema/result.schema.json).\n"
    "Allowed statuses: PASS, MARGINAL, SKIP, WAIVED. An interrupted run exits 3.\n";

}  // namespace

void add_run(CLI::App& app, Invocation& invocation) {
  CLI::App* command = new_command(app, "run", "Run cases on subjects and judge them against the goldens", kExamples);
  const auto request = std::make_shared<RunRequest>();
  command
      ->add_option("selectors", request->selectors, "Models, globs over case ids, model:, aspect:, op:, tier:, @file")
      ->type_name("SELECTOR");
  command->add_option("--case", request->cases, "One case by its id, whatever its tier (repeatable)")->type_name("ID");
  command
      ->add_option(
          "--subject", request->subjects,
          "reference, fast, or the path of an engine's library (repeatable; default: the built-in ones that work here)")
      ->type_name("NAME");
  command->add_option("--tier", request->tier, "smoke, ci or slow, with those before it (default: ci)")
      ->type_name("TIER");
  CLI::Option* out = command
                         ->add_option("--out", request->out,
                                      "Folder of results.jsonl (default: out/latest; out/rerun with --rerun-failed)")
                         ->type_name("DIR");
  command->add_option("--dump", request->dump, "Write the tensors of failing cases here")->type_name("DIR");
  command->add_option("--repeat", request->repeat, "Run each case N times; differing statuses are FLAKY")
      ->type_name("N")
      ->check(CLI::Range(1, 1000000));
  command
      ->add_option("--jobs", request->jobs,
                   "Worker processes at once, each with one model (default: one for each hardware thread; 1 for a "
                   "subject on a GPU)")
      ->type_name("N")
      ->check(CLI::Range(1, 1024));
  command->add_option("--shard", request->shard, "Only every n-th case, from the k-th on")->type_name("k/n");
  command->add_flag("--resume", request->resume, "Go on with the run in the folder: keep its rows, run the rest");
  command
      ->add_option("--rerun-failed", request->rerun_failed, "Only what failed or did not finish in this results.jsonl")
      ->type_name("FILE");
  command
      ->add_option("--timeout", request->timeout_s,
                   "Watchdog: seconds a case may take with all its repetitions, and the opening of a subject")
      ->type_name("SECONDS")
      ->capture_default_str();
  command->add_option("--fail-on", request->fail_on, "Also fail on this status, e.g. SKIP (repeatable)")
      ->type_name("STATUS");
  for (const char* repeatable : {"--case", "--subject", "--fail-on"}) {
    // One value each: `--case ID mamba2` leaves mamba2 to the selectors.
    command->get_option(repeatable)->allow_extra_args(false);
  }
  command->callback([request, out, &invocation] {
    if (out->count() == 0 && !request->rerun_failed.empty() && !request->resume) request->out = "out/rerun";
    invocation.action = [request, &invocation] { return run_cases(*request, invocation, Console::standard()); };
  });
}

}  // namespace assay
