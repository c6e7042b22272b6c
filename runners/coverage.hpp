// Coverage: which cells of models x aspects have a case. A cell without one fails a run of the whole corpus
// and `assay list --coverage`.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "cases/spec/case.hpp"

namespace assay {

std::vector<std::string> all_models();  // of models.def, in its order

// "jamba/beams": the cells of these models and kAspects for which the corpus has no case, whatever its tier.
std::vector<std::string> missing_cells(const Corpus& corpus, const std::vector<std::string>& models);

// Cases in a cell: all, and those that some subject can run (all of them where no subject is asked about).
struct CoverageCell {
  int cases = 0, runnable = 0;
};
using Coverage = std::map<std::string, std::map<std::string, CoverageCell>>;  // model, aspect

// One line a model, one column an aspect: "7", "5/7" where only 5 can run, "-" for no case.
std::string coverage_table(const std::vector<std::string>& models, const Coverage& coverage);

}  // namespace assay
