#include "runners/bench/run_models.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>

#include "cases/spec/error.hpp"
#include "cases/spec/weights.hpp"
#include "runners/bench/model_row.hpp"

namespace assay::bench {

namespace {

// Null, and the problem kept, where the subject refuses it.
std::unique_ptr<Model> load(const ModelRun& run, const ModelConfig& config, std::string& problem) {
  try {
    return run.subject.load(config, open_weights(config), {});
  } catch (const Error& error) {
    problem = error.what();
    return nullptr;
  }
}

}  // namespace

int64_t run_models(const std::vector<std::string>& models, const ModelRun& run) {
  std::vector<const ModelConfig*> configs;
  for (const std::string& model : models) {
    const std::string id = fmt::format("{}/{}", model, kModelConfig);
    const auto found = run.corpus.configs.find(id);
    if (found == run.corpus.configs.end())
      throw InputError("bench", "there is no config " + id, "its config.json and cases make it one that can be timed");
    configs.push_back(&found->second);
  }
  const Capabilities& capabilities = run.subject.capabilities();
  for (const std::string& text : model_header_lines(capabilities, run.table, run.repetitions)) fmt::print("{}\n", text);

  const auto begin = std::chrono::steady_clock::now();
  int64_t failed = 0;
  for (const ModelConfig* config : configs) {
    ModelGate gated;
    {
      GoldenStore goldens(run.corpus.root);
      gated = gate(run.corpus, *config, run.subject, goldens);
    }
    const auto model = gated.passed ? load(run, *config, gated.text) : nullptr;
    gated.passed = model != nullptr;
    for (const ModelCall& call : model_calls()) {
      ModelMeasured measured;
      if (model) {
        measured = measure(call, *config, *model, capabilities, run.table, run.repetitions);
      } else {
        measured.call = &call;
        measured.id = fmt::format("{}.{}", config->id(), call.name);
        measured.problem = gated.text;
      }
      if (!measured.problem.empty()) ++failed;
      fmt::print("{}\n", line(measured));
      std::fflush(stdout);
      if (run.after_row) run.after_row(to_json(measured, gated, capabilities));
    }
  }
  const std::chrono::duration<double> whole = std::chrono::steady_clock::now() - begin;
  fmt::print("# {} calls in {:.0f} s, gates and loading included\n", configs.size() * model_calls().size(),
             whole.count());
  return failed;
}

}  // namespace assay::bench
