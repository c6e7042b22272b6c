#include "golden/record.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "cases/spec/error.hpp"
#include "cases/spec/export.hpp"
#include "cases/spec/json.hpp"
#include "cases/spec/model_spec.hpp"
#include "cases/spec/safetensors.hpp"
#include "cases/spec/scratch_folder.hpp"
#include "golden/child.hpp"
#include "golden/compose.hpp"
#include "golden/kinds.hpp"

namespace assay::golden {
namespace {

constexpr const char* kAdvice = "ci/originals makes the originals' environment and checks it";

void run_original(const RecordRequest& request, const RecordOptions& options, const std::filesystem::path& exported,
                  const std::filesystem::path& out) {
  const std::filesystem::path script = options.root / "golden/record/record.py";
  if (!std::filesystem::exists(script))
    throw HarnessError(script.string(), "no such file", "is root the repository's?");
  std::vector<std::string> arguments{options.python.string(),
                                     script.string(),
                                     "--export",
                                     exported.string(),
                                     "--inputs",
                                     fmt::format("{}", fmt::join(request.inputs, ",")),
                                     "--out",
                                     out.string(),
                                     "--kind",
                                     request.kind};
  if (!request.unquantized.empty()) {
    arguments.push_back("--unquantized");
    arguments.push_back(fmt::format("{}", fmt::join(request.unquantized, ",")));
  }
  // Set before the interpreter starts: its thread pools and its user site are fixed by then. What torch leaves in the
  // temporary folder goes with ours.
  const std::vector<std::pair<std::string, std::string>> environment{{"OMP_NUM_THREADS", "1"},
                                                                     {"PYTHONDONTWRITEBYTECODE", "1"},
                                                                     {"PYTHONNOUSERSITE", "1"},
                                                                     {"PYTHONUTF8", "1"},
                                                                     {"TMPDIR", exported.parent_path().string()}};
  const ChildResult result = run_child(
      arguments, environment,
      [&](const std::string& line) {
        if (options.progress) options.progress(line);
      },
      options.stop);
  if (result.exit_code == 0) return;
  const std::string tail = fmt::format("{}", fmt::join(result.tail, "\n  "));
  const std::string how = result.signal ? fmt::format("was ended by signal {}", result.signal)
                                        : fmt::format("ended with exit code {}", result.exit_code);
  throw HarnessError(request.config->id(), "the original's run " + how + "; its last lines:\n  " + tail, kAdvice);
}

}  // namespace

std::vector<Golden> record(const RecordRequest& request, const RecordOptions& options) {
  const ModelConfig& config = *request.config;
  if (!find_kind(request.kind)) {
    std::vector<std::string_view> known;
    for (const Kind& kind : kinds()) known.push_back(kind.name);
    throw InputError(config.id(), "cannot record kind \"" + request.kind + "\"",
                     fmt::format("the recorder knows {}", fmt::join(known, ", ")));
  }
  if (request.inputs.empty()) throw InputError(config.id(), "no inputs to record");
  for (const std::string& input : request.inputs) config.input(input);

  const ScratchFolder folder;
  const std::filesystem::path exported = folder.path() / "export", out = folder.path() / "out";
  if (options.progress) options.progress(fmt::format("{}: exporting", config.id()));
  export_model(config, exported);
  run_original(request, options, exported, out);

  const nlohmann::json run = read_json(out / "run.json"), manifest = read_json(exported / "assay.json");
  if (manifest.at("config_digest") != config.digest)
    throw HarnessError(config.id(), "the export's config digest is not the config's");
  const std::vector<ProbeSpec> probes = model_spec(config.model).probes(config);
  std::vector<Golden> goldens;
  for (const std::string& input : request.inputs) {
    const auto tensors = open_safetensors(out / (input + ".safetensors"));
    goldens.push_back(compose(config, input, request.kind, probes, *tensors, run, manifest));
  }
  return goldens;
}

std::filesystem::path originals_python(const std::filesystem::path& root) {
  const char* named = std::getenv("ASSAY_ORIGINALS_PYTHON");
  const std::filesystem::path python =
      named && *named ? std::filesystem::path(named) : root / ".env-originals/bin/python";
  const std::string what = named && *named ? "ASSAY_ORIGINALS_PYTHON, the interpreter of the originals' environment,"
                                           : "the interpreter of the originals' environment";
  constexpr const char* kHow =
      "run ci/originals, or set ASSAY_ORIGINALS_PYTHON to the path of an interpreter that has the packages of "
      "golden/record/requirements.txt";
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(python, error);
  if (!std::filesystem::exists(status)) throw HarnessError(python.string(), what + " does not exist", kHow);
  if (!std::filesystem::is_regular_file(status) || ::access(python.c_str(), X_OK) != 0)
    throw HarnessError(python.string(), what + " is not a program that can be executed", kHow);
  return python;
}

}  // namespace assay::golden
