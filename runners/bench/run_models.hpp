// RunModels: `assay bench` of whole models: each loaded, gated by its cases, then timed.
#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cases/spec/case.hpp"
#include "cases/spec/subject.hpp"
#include "runners/bench/shapes.hpp"

namespace assay::bench {

struct ModelRun {
  Subject& subject;
  const Corpus& corpus;
  const Table& table;
  int repetitions = 50;
  std::function<void(const nlohmann::json& row)> after_row = {};
};

// Prints a row a call as it comes. Returns how many rows have no time. InputError where a family has no config to time.
int64_t run_models(const std::vector<std::string>& models, const ModelRun& run);

}  // namespace assay::bench
