// Recording: runs the originals (golden/record/record.py, in the environment that ci/originals makes) on exported
// weights and turns what they computed into goldens. Nothing else ever writes one.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "cases/spec/model_config.hpp"
#include "golden/golden.hpp"

namespace assay::golden {

struct RecordRequest {
  const ModelConfig* config;
  std::vector<std::string> inputs;
  std::string kind;                      // f32, f16, bf16, nf4, nf4dq
  std::vector<std::string> unquantized;  // nf4, nf4dq: last parts of the names of modules to leave as they are
};

struct RecordOptions {
  std::filesystem::path root;                        // repository root: golden/record/record.py below it
  std::filesystem::path python;                      // interpreter of the originals' environment
  std::function<void(const std::string&)> progress;  // one line a step
  int stop = -1;  // a descriptor: once it is readable the original is killed and record throws Stopped (child.hpp)
};

// Exports the config, runs the original once for all inputs in one process, checks that it held exactly the exported
// weights, and returns one golden an input. InputError / HarnessError with the original's last lines of output.
std::vector<Golden> record(const RecordRequest& request, const RecordOptions& options);

// Where the interpreter is: $ASSAY_ORIGINALS_PYTHON, else <root>/.env-originals/bin/python. HarnessError naming
// ci/originals when there is none.
std::filesystem::path originals_python(const std::filesystem::path& root);

}  // namespace assay::golden
