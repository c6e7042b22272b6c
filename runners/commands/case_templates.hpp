// What `assay new` writes for each aspect: the shortest case of the aspect that means something.
#pragma once

#include <string>

#include "cases/spec/case.hpp"

namespace assay {

// The text of a case file of this aspect, its `why` left empty. Inputs are chosen from the config: the first prompt,
// another one, and one with greedy tokens. InputError where the config lacks what the aspect needs.
// aspect: one of kAspects.
std::string case_template(const std::string& aspect, const ModelConfig& config, const Corpus& corpus);

}  // namespace assay
