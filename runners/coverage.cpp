#include "runners/coverage.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cases/spec/model_spec.hpp"
#include "cases/spec/select.hpp"

namespace assay {

std::vector<std::string> all_models() {
  std::vector<std::string> models;
  for (const ModelSpec& spec : model_specs()) models.emplace_back(spec.name);
  return models;
}

std::vector<std::string> missing_cells(const Corpus& corpus, const std::vector<std::string>& models) {
  std::set<std::pair<std::string, std::string>> present;
  for (const Case& test_case : corpus.cases) present.emplace(test_case.model, test_case.aspect);
  std::vector<std::string> missing;
  for (const std::string& model : models)
    for (const char* aspect : kAspects)
      if (!present.contains({model, aspect})) missing.push_back(model + "/" + aspect);
  return missing;
}

std::string coverage_table(const std::vector<std::string>& models, const Coverage& coverage) {
  std::string text = fmt::format("{:16}", "");
  for (const std::string aspect : kAspects) text += fmt::format(" {:>8}", aspect);
  text += "\n";
  for (const std::string& model : models) {
    text += fmt::format("{:16}", model);
    const auto row = coverage.find(model);
    for (const std::string aspect : kAspects) {
      std::string cell = "-";
      if (row != coverage.end())
        if (const auto found = row->second.find(aspect); found != row->second.end()) {
          const CoverageCell& counts = found->second;
          cell = counts.runnable == counts.cases ? std::to_string(counts.cases)
                                                 : fmt::format("{}/{}", counts.runnable, counts.cases);
        }
      text += fmt::format(" {:>{}}", cell, std::max<size_t>(8, aspect.size()));
    }
    text += "\n";
  }
  return text;
}

}  // namespace assay
